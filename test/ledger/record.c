/*-------------------------------------------------------------------------
 *
 * record.c
 *	  The ledger's files, and what is checked of each ID when it is received.
 *
 * No client may have received the ID before, and it must be larger than every
 * ID that any client had received when the call began.
 *
 * Knows nothing of connections and SQL, nor when a clock was stepped or a server
 * paused.
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "ledger.h"

#define MAX_EXAMPLES		3

/*
 * The values received from one sequence: a bit for each of VALUE_BITS values.
 */
#define VALUE_BITS			(UINT64_C(1) << 41)

struct Values
{
	uint64_t	base;			/* value of the first bit, 0 if none came */
	uint64_t	greatest;
	uint8_t		bits[VALUE_BITS / 8];
};

const char *const fault_names[FAULTS] = {
	"duplicates",
	"not growing within a call",
	"out of order in time",
	"wrong shard",
	"too far ahead of the clock",
	"behind the clock",
	"errors that must not be"
};

/*
 * SQLSTATEs, or their first characters, with which a client has to live when
 * servers die, are promoted or shut down.  All others are faults.
 */
static const char *const expected_errors[] = {
	"08",						/* connection lost */
	"57P",						/* server shuts down, starts up */
	"57014",					/* canceled, by a shutdown */
	"25006",					/* not promoted yet */
	"53300",					/* too many connections */
	"53400"						/* too far ahead of the clock */
};

int64_t
monotonic(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NSECS + now.tv_nsec;
}

/*
 * Map a file of the ledger, or memory alone if the ledger has no path.
 */
static void *
map_file(const char *path, const char *suffix, size_t size, bool make)
{
	char		name[1024] = "";
	void	   *memory;
	int			file = -1;

	if (path != NULL)
	{
		snprintf(name, sizeof(name), "%s.%s", path, suffix);
		file = open(name, make ? O_RDWR | O_CREAT : O_RDWR, 0666);
		if (file < 0 || (make && ftruncate(file, size) != 0))
			err(2, "could not open \"%s\"", name);
	}
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
				  MAP_NORESERVE | MAP_SHARED | (path == NULL ? MAP_ANONYMOUS : 0), file, 0);
	if (memory == MAP_FAILED)
		err(2, "could not map \"%s\"", name);
	close(file);
	return memory;
}

/*
 * Open a ledger for IDs of a number of sequences.  It must exist if that is 0.
 */
void
open_ledger(Ledger *ledger, const char *path, int sequences)
{
	char		suffix[16];

	memset(ledger, 0, sizeof(Ledger));
	ledger->state = map_file(path, "state", sizeof(State), sequences > 0);
	for (int i = 0; i < sequences; i++)
	{
		snprintf(suffix, sizeof(suffix), "%d", i);
		ledger->values[i] = map_file(path, suffix, sizeof(Values), true);
	}
}

void
tally_error(State *state, uint64_t sqlstate, uint64_t count)
{
	for (Tally *error = state->errors; error < state->errors + MAX_ERRORS - 1; error++)
	{
		uint64_t	free = 0;

		/* If the entry is taken, this sets "free" to whose it is. */
		if (__atomic_compare_exchange_n(&error->sqlstate, &free, sqlstate, false,
										__ATOMIC_RELAXED, __ATOMIC_RELAXED) || free == sqlstate)
		{
			count_up(error->count, count);
			return;
		}
	}
	errx(2, "more than %d kinds of errors", MAX_ERRORS - 1);
}

/*
 * Count a fault, and show the first ones, with the ID at fault or the
 * microseconds between an ID's time and the clock.
 */
void
blame(const Ledger *ledger, const Call *call, Fault fault, int64_t number)
{
	if (count_up(ledger->state->faults[fault], 1) >= MAX_EXAMPLES || ledger->silent)
		return;
	fprintf(stderr, "%s: %" PRId64 ", session %u, sequence %u, shard %u, call %c %" PRId64 " .. %" PRId64
			" with %u IDs of values %" PRIu64 " .. %" PRIu64 ", floor %" PRIu64 ", SQLSTATE \"%s\"\n",
			fault_names[fault], number, call->session, call->sequence, call->shard, call->kind, call->begin,
			call->end, call->count, call->first, call->last, call->floor, call->sqlstate);
}

void
begin_call(const Ledger *ledger, Call *call)
{
	call->floor = __atomic_load_n(&ledger->values[call->sequence]->greatest, __ATOMIC_ACQUIRE);
}

/*
 * Mark a value as received, and return whether it was before.
 */
static bool
mark(Values *values, uint64_t value)
{
	uint64_t	base = __atomic_load_n(&values->base, __ATOMIC_RELAXED);
	uint8_t		bit;

	if (base == 0)
	{
		/* Leave room below the first value for values that must not come. */
		uint64_t	mine = value > VALUE_BITS / 4 ? value - VALUE_BITS / 4 : 1;

		/* If another client is first, this sets "base" to its choice. */
		if (__atomic_compare_exchange_n(&values->base, &base, mine, false,
										__ATOMIC_RELAXED, __ATOMIC_RELAXED))
			base = mine;
	}
	if (value < base || value - base >= VALUE_BITS)
		errx(2, "value %" PRIu64 " is too far from the others", value);
	bit = 1 << (value - base) % 8;
	return __atomic_fetch_or(&values->bits[(value - base) / 8], bit, __ATOMIC_RELAXED) & bit;
}

/*
 * Note an ID that has been received.
 */
void
receive(const Ledger *ledger, Call *call, uint64_t id)
{
	uint64_t	value = ID_VALUE(id);

	if (mark(ledger->values[call->sequence], value))
		blame(ledger, call, DUPLICATE, id);
	if (value <= call->floor && call->late == 0)
		call->late = id;
	if (call->count > 0 && value <= call->last)
		blame(ledger, call, DISORDER_IN_CALL, id);
	if (ID_SHARD(id) != call->shard)
		blame(ledger, call, WRONG_SHARD, id);

	if (call->count++ == 0)
		call->first = value;
	call->last = value;
}

/*
 * Raise the floor of the calls that begin from here on.
 */
void
publish(const Ledger *ledger, const Call *call)
{
	uint64_t   *greatest = &ledger->values[call->sequence]->greatest;
	uint64_t	known = __atomic_load_n(greatest, __ATOMIC_RELAXED);

	while (call->last > known &&
		   !__atomic_compare_exchange_n(greatest, &known, call->last, false,
										__ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
}

/*
 * Note a call that "ledger check" will blame if nothing excuses it.
 */
static void
suspect(State *state, const Call *call, Fault fault, int64_t number)
{
	uint64_t	i = count_up(state->suspect_count, 1);

	if (i < MAX_SUSPECTS)
		state->suspects[i] = (Suspect) {*call, fault, number};
	else
		count_up(state->unexcused[fault], 1);
}

/*
 * Compare a call's time with the server's clock.
 */
static void
compare_with_clock(State *state, const Call *call, Fault fault, int64_t usecs, int64_t allowed)
{
	count_up(state->clock_checked, 1);
	if (usecs > allowed)
		suspect(state, call, fault, usecs);
}

static bool
is_expected_error(const Call *call)
{
	for (size_t i = 0; i < sizeof(expected_errors) / sizeof(expected_errors[0]); i++)
		if (strncmp(call->sqlstate, expected_errors[i], strlen(expected_errors[i])) == 0)
			return true;
	/*
	 * A change of the sequence gives up when it has to wait for its lock.  An ID
	 * that is more than a day ahead of the clock is refused.
	 */
	return (call->kind == 'w' && strcmp(call->sqlstate, "55P03") == 0) ||
		(call->kind == 'v' && strcmp(call->sqlstate, "22023") == 0);
}

/*
 * Note a call that has ended, with IDs, an error, or both.  The server's message may be empty.
 */
void
end_call(const Ledger *ledger, const Call *call, const char *message)
{
	State	   *state = ledger->state;
	bool		failed = call->sqlstate[0] != '\0';

	publish(ledger, call);
	count_up(state->calls, 1);
	if (failed)
	{
		uint64_t	sqlstate;

		memcpy(&sqlstate, call->sqlstate, sizeof(sqlstate));
		tally_error(state, sqlstate, 1);
		if (!is_expected_error(call))
		{
			blame(ledger, call, BAD_ERROR, 0);
			if (!__atomic_exchange_n(&state->has_bad_error, true, __ATOMIC_RELAXED))
				snprintf(state->bad_error, sizeof(state->bad_error), "call %c: %s %s", call->kind, call->sqlstate,
						 message);
		}
	}
	if (call->count == 0)
		return;

	count_up(state->ids, call->count);
	count_up(state->kinds[(int) call->kind], call->count);
	count_up(state->cut_off, failed);
	if (call->late != 0)
		suspect(state, call, DISORDER_IN_TIME, call->late);

	/*
	 * The server took the first ID after it read the clock for the first time,
	 * and the last ID before it read the clock again.
	 */
	if (call->clock_after != 0)
		compare_with_clock(state, call, AHEAD_OF_CLOCK,
						   VALUE_MSECS(call->last) * 1000 - call->clock_after, ledger->max_lead);
	if (call->clock_before != 0)
		compare_with_clock(state, call, BEHIND_CLOCK,
						   (call->clock_before / 1000 - VALUE_MSECS(call->first)) * 1000, 0);
}
