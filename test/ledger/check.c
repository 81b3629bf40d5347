/*-------------------------------------------------------------------------
 *
 * check.c
 *	  When clocks were stepped and servers paused, and the report of what the clients
 *	  found.
 *
 * Knows nothing of servers, connections and SQL.
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ledger.h"

/*
 * Read a log, each line of which has the moments between which something happened.
 */
static Log
read_log(const char *name)
{
	FILE	   *file = fopen(name, "r");
	Log			log = {0};
	Span		span;

	if (file == NULL)
		err(2, "could not open \"%s\"", name);
	while (fscanf(file, "%" SCNd64 " %" SCNd64, &span.begin, &span.end) == 2)
	{
		log.spans = realloc(log.spans, (log.count + 1) * sizeof(Span));
		log.spans[log.count++] = span;
	}
	if (!feof(file))
		errx(2, "\"%s\" is not a log of times", name);
	fclose(file);
	return log;
}

/*
 * Did one of these things happen during a call?
 */
static bool
happened_during(const Log *log, const Call *call)
{
	for (int i = 0; i < log->count; i++)
		if (log->spans[i].begin <= call->end && log->spans[i].end >= call->begin)
			return true;
	return false;
}

/*
 * Blame the suspects that nothing excuses, and return how many are excused.  A step
 * of a clock excuses times that do not fit it, and an old primary that goes on
 * excuses IDs that are smaller than its successor's.
 */
uint64_t
judge_suspects(const Ledger *ledger, const Log *steps, const Log *pauses)
{
	State	   *state = ledger->state;
	uint64_t	count = state->suspect_count < MAX_SUSPECTS ? state->suspect_count : MAX_SUSPECTS;
	uint64_t	excused = 0;

	for (const Fault *fault = (const Fault[]) {AHEAD_OF_CLOCK, BEHIND_CLOCK, DISORDER_IN_TIME, FAULTS};
		 *fault != FAULTS; fault++)
		state->faults[*fault] = state->unexcused[*fault];
	for (const Suspect *suspect = state->suspects; suspect < state->suspects + count; suspect++)
	{
		const Log  *excuses = suspect->fault == DISORDER_IN_TIME ? pauses : steps;

		if (happened_during(excuses, &suspect->call))
			excused++;
		else
			blame(ledger, &suspect->call, suspect->fault, suspect->number);
	}
	return excused;
}

/*
 * Add a ledger's counts to those of the others.
 */
static void
add(State *sum, const State *state)
{
	for (int i = 0; i < FAULTS; i++)
		sum->faults[i] += state->faults[i];
	for (int i = 0; i < 128; i++)
		sum->kinds[i] += state->kinds[i];
	sum->ids += state->ids;
	sum->calls += state->calls;
	sum->cut_off += state->cut_off;
	sum->clock_checked += state->clock_checked;
	sum->advances += state->advances;
	for (const Tally *error = state->errors; error->count > 0; error++)
		tally_error(sum, error->sqlstate, error->count);
	if (sum->bad_error[0] == '\0')
		memcpy(sum->bad_error, state->bad_error, sizeof(sum->bad_error));
}

/*
 * check [--steps LOG] [--pauses LOG] LEDGER...: report what was found, and return 0
 * if it is no fault.
 */
int
check(int argc, char **argv)
{
	static State sum;
	Log			steps = {0};
	Log			pauses = {0};
	uint64_t	excused = 0;
	bool		good;

	for (; argc > 2; argc -= 2, argv += 2)
	{
		if (strcmp(argv[1], "--steps") == 0)
			steps = read_log(argv[2]);
		else if (strcmp(argv[1], "--pauses") == 0)
			pauses = read_log(argv[2]);
		else
			break;
	}
	if (argc < 2)
		errx(2, "usage: ledger check [--steps LOG] [--pauses LOG] LEDGER...");

	while (*++argv != NULL)
	{
		Ledger		ledger;

		open_ledger(&ledger, *argv, 0);
		excused += judge_suspects(&ledger, &steps, &pauses);
		add(&sum, ledger.state);
	}

	good = sum.ids > 0;
	printf("%-30s %" PRIu64 " in %" PRIu64 " calls, %" PRIu64 " of them cut off\n",
		   "IDs received", sum.ids, sum.calls, sum.cut_off);
	for (int i = 0; i < FAULTS; i++)
	{
		printf("%-30s %" PRIu64 "\n", fault_names[i], sum.faults[i]);
		good = good && sum.faults[i] == 0;
	}
	if (sum.bad_error[0] != '\0')
		printf("%-30s %s\n", "the first such error", sum.bad_error);
	printf("%-30s %" PRIu64 " times\n", "compared with the clock", sum.clock_checked);
	printf("%-30s %" PRIu64 " calls, by %d steps and %d pauses\n", "excused", excused, steps.count, pauses.count);
	printf("%-30s", "IDs by kind of call");
	for (int i = 0; i < 128; i++)
		if (sum.kinds[i] > 0)
			printf(" %c: %" PRIu64, i, sum.kinds[i]);
	putchar('\n');
	printf("%-30s %" PRIu64 " calls\n", "snowflake_advance()", sum.advances);
	printf("%-30s%s", "errors by SQLSTATE", sum.errors->count == 0 ? " none" : "");
	for (const Tally *error = sum.errors; error->count > 0; error++)
		printf(" %.8s: %" PRIu64, (const char *) &error->sqlstate, error->count);
	putchar('\n');
	return good ? 0 : 1;
}
