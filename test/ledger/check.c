/*-------------------------------------------------------------------------
 *
 * check.c
 *	  When clocks were stepped, and the report of what the clients found.
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
 * Read the log of steps, each with the moments between which a clock was set, and
 * return how many there are.
 */
static int
read_steps(const char *name, Step **steps)
{
	FILE	   *file = fopen(name, "r");
	Step		step;
	int			count = 0;

	if (file == NULL)
		err(2, "could not open \"%s\"", name);
	while (fscanf(file, "%" SCNd64 " %" SCNd64, &step.begin, &step.end) == 2)
	{
		*steps = realloc(*steps, (count + 1) * sizeof(Step));
		(*steps)[count++] = step;
	}
	if (!feof(file))
		errx(2, "\"%s\" is not a log of clock steps", name);
	fclose(file);
	return count;
}

/*
 * Blame the suspects that no step of a clock excuses, and return how many are
 * excused.
 */
uint64_t
judge_suspects(const Ledger *ledger, const Step *steps, int count)
{
	State	   *state = ledger->state;
	uint64_t	excused = 0;

	state->faults[AHEAD_OF_CLOCK] = state->faults[BEHIND_CLOCK] = 0;
	for (const Suspect *suspect = state->suspects;
		 suspect < state->suspects + state->suspect_count; suspect++)
	{
		bool		stepped = false;

		for (int i = 0; i < count; i++)
			stepped |= steps[i].begin <= suspect->call.end && steps[i].end >= suspect->call.begin;
		if (stepped)
			excused++;
		else
			blame(ledger, &suspect->call, suspect->fault, suspect->usecs);
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
}

/*
 * check [--steps LOG] LEDGER...: report what was found, and return 0 if it is
 * no fault.
 */
int
check(int argc, char **argv)
{
	static State sum;
	Step	   *steps = NULL;
	int			step_count = 0;
	uint64_t	excused = 0;
	bool		good;

	if (argc > 2 && strcmp(argv[1], "--steps") == 0)
	{
		step_count = read_steps(argv[2], &steps);
		argc -= 2;
		argv += 2;
	}
	if (argc < 2)
		errx(2, "usage: ledger check [--steps LOG] LEDGER...");

	while (*++argv != NULL)
	{
		Ledger		ledger;

		open_ledger(&ledger, *argv, 0);
		excused += judge_suspects(&ledger, steps, step_count);
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
	printf("%-30s %" PRIu64 " times, %" PRIu64 " excused by %d steps\n",
		   "compared with the clock", sum.clock_checked, excused, step_count);
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
