/*-------------------------------------------------------------------------
 *
 * selftest.c
 *	  Whether the ledger finds the faults that it is there to find.
 *
 * Plays calls with planted faults to a temporary ledger, as if clients had made
 * them, and prints a line for each test.
 *
 * Knows nothing of connections and SQL, or of the ledger's files.
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <string.h>

#include "ledger.h"

#define CALLS				40
#define IDS					16	/* of each call */
#define LEAD				INT64_C(1000000)	/* microseconds */

/*
 * Calls of four sessions in turn.  Each call overlaps with the one before it
 * and the one after it, which other sessions make.
 */
static Call calls[CALLS];
static uint64_t ids[CALLS][IDS];

/* Fill the calls with what is right. */
static void
reset(void)
{
	uint64_t	msecs = UINT64_C(480000000000);

	for (int n = 0; n < CALLS; n++)
	{
		int64_t		clock = ID_MSECS(++msecs << 23) * 1000;

		calls[n] = (Call) {.session = n % 4, .shard = 5 + n % 2, .kind = 'b',
			.begin = n * 1000, .end = n * 1000 + 1500, .clock_before = clock, .clock_after = clock};
		for (int i = 0; i < IDS; i++)
			ids[n][i] = msecs << 23 | (uint64_t) calls[n].shard << 10 | (uint64_t) (i * 7);
	}
}

static void
finish(const Ledger *ledger, int n)
{
	Call		call = calls[n];

	for (int i = 0; i < IDS; i++)
		receive(ledger, &call, ids[n][i]);
	end_call(ledger, &call, "");
}

/*
 * Play the calls, and compare the faults that the ledger finds with those that
 * were planted, a bit for each.  Afterwards, the calls are right again.
 */
static int
expect(const char *what, const Span *step, const Span *pause, unsigned planted)
{
	Ledger		ledger;
	unsigned	found = 0;

	open_ledger(&ledger, NULL, 1);
	ledger.max_lead = LEAD;
	ledger.silent = true;
	for (int n = 0; n < CALLS; n++)
	{
		bool		overlaps = n > 0 && calls[n - 1].end >= calls[n].begin;

		if (n > 0 && !overlaps)
			finish(&ledger, n - 1);
		begin_call(&ledger, &calls[n]);
		if (overlaps)
			finish(&ledger, n - 1);
	}
	finish(&ledger, CALLS - 1);
	judge_suspects(&ledger, &(Log) {(Span *) step, step != NULL}, &(Log) {(Span *) pause, pause != NULL});

	for (int i = 0; i < FAULTS; i++)
		found |= (ledger.state->faults[i] > 0) << i;
	printf("%s - %s\n", found == planted ? "ok" : "not ok", what);
	if (found != planted)
		printf("#   faults %#x were planted, and %#x found\n", planted, found);
	reset();
	return found != planted;
}

/* The same value in another shard */
#define IN_SHARD(id, shard) VALUE_ID(ID_VALUE(id), shard)

/* The IDs of call 21 are those of call 22, plus 3. */
static void
disorder(void)
{
	calls[21].clock_before = calls[21].clock_after = calls[22].clock_before = 0;
	for (int i = 0; i < IDS; i++)
		ids[21][i] = IN_SHARD(ids[22][i], calls[21].shard) + 3;
}

int
selftest(void)
{
	int			failed = 0;

#define BIT(fault) (1u << (fault))
	reset();
	failed += expect("calls without a fault have none", NULL, NULL, 0);

	ids[22][0] = IN_SHARD(ids[21][IDS - 1], calls[22].shard);
	calls[22].clock_before = 0;
	failed += expect("a value that two overlapping calls received, for two shards, is found", NULL, NULL, BIT(DUPLICATE));

	ids[30][3] = ids[2][3];
	failed += expect("an ID that a session received twice is found", NULL, NULL,
					 BIT(DUPLICATE) | BIT(DISORDER_IN_CALL) | BIT(DISORDER_IN_TIME));

	ids[30][3] = ids[4][3];
	strcpy(calls[30].sqlstate, "08006");
	calls[30].clock_after = 0;
	failed += expect("an ID that came again in a call that was cut off is found", NULL, NULL,
					 BIT(DUPLICATE) | BIT(DISORDER_IN_CALL) | BIT(DISORDER_IN_TIME));

	ids[21][5] = ids[21][4] - 1;
	failed += expect("IDs that came out of order within a call are found", NULL, NULL, BIT(DISORDER_IN_CALL));

	disorder();
	failed += expect("disorder between calls that overlap is no fault", NULL, NULL, 0);
	disorder();
	calls[21].end = calls[22].begin - 1;
	failed += expect("disorder between calls that do not overlap is found", NULL, NULL, BIT(DISORDER_IN_TIME));
	disorder();
	calls[21].end = calls[22].begin - 1;
	failed += expect("an old primary that goes on during a call excuses disorder", NULL,
					 &(Span) {calls[22].begin - 100, calls[22].begin}, 0);
	disorder();
	calls[21].end = calls[22].begin - 1;
	failed += expect("an old primary that went on before a call does not excuse it", NULL,
					 &(Span) {calls[22].begin - 100, calls[22].begin - 1}, BIT(DISORDER_IN_TIME));

	ids[7][9] ^= UINT64_C(1) << 12;
	failed += expect("an ID of another shard is found", NULL, NULL, BIT(WRONG_SHARD));

	calls[20].clock_after -= LEAD;
	failed += expect("an ID whose time is ahead of the clock by the largest lead is no fault", NULL, NULL, 0);
	calls[20].clock_after -= LEAD + 1;
	failed += expect("an ID whose time is ahead by a microsecond more is found", NULL, NULL, BIT(AHEAD_OF_CLOCK));
	calls[20].clock_after -= LEAD + 1;
	failed += expect("a step of the clock during a call excuses it",
					 &(Span) {calls[20].end, calls[20].end + 100}, NULL, 0);
	calls[20].clock_after -= LEAD + 1;
	failed += expect("a step of the clock after a call does not excuse it",
					 &(Span) {calls[20].end + 1, calls[20].end + 100}, NULL, BIT(AHEAD_OF_CLOCK));
	calls[20].clock_after -= LEAD + 1;
	failed += expect("a step of the clock before a call does not excuse it",
					 &(Span) {calls[20].begin - 100, calls[20].begin - 1}, NULL, BIT(AHEAD_OF_CLOCK));

	calls[20].clock_before += 999;
	failed += expect("an ID of the clock's millisecond is no fault", NULL, NULL, 0);
	calls[20].clock_before += 1000;
	failed += expect("an ID of the millisecond before is found", NULL, NULL, BIT(BEHIND_CLOCK));

	strcpy(calls[10].sqlstate, "57P01");
	failed += expect("the error of a server that shuts down is no fault", NULL, NULL, 0);
	strcpy(calls[10].sqlstate, "XX000");
	failed += expect("an internal error is found", NULL, NULL, BIT(BAD_ERROR));

	printf("%d failed\n", failed);
	return failed > 0;
}
