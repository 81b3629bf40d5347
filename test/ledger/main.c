/*-------------------------------------------------------------------------
 *
 * main.c
 *	  The ledger's command line.
 *
 * "ledger run" notes every ID that reached a client, outside the server, also
 * if the transaction or the server died afterwards.  "ledger check" reports
 * the faults that this showed.
 *
 * Knows nothing of how they do it.
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <string.h>

#include "ledger.h"

static const char *const usage =
"usage: ledger run [OPTION...] LEDGER      load a server until SIGTERM; writes LEDGER.*\n"
"  The environment says where the server is, as for psql: PGHOST, PGSERVICEFILE...\n"
"  --sessions N              4 if not given\n"
"  --sequences NAME[=LAYOUT],...    next_id_seq if not given; a layout with Instagram's fields\n"
"  --max-lead MS             how far an ID's time may be ahead of the server's clock; 1000\n"
"  --half SETTINGS           like -c name=value, for every other session\n"
"  --seed N                  1 if not given\n"
"  --quiet                   only SELECT, which writes no WAL of its own\n"
"  --bulk                    also many IDs at a time, COPY, rewrites of tables and sequences\n"
"  --every MS:SQL            one more session that does this about every MS milliseconds\n"
"  --advance N               N of 100 turns call snowflake_advance()\n"
"  --nextval N               N of 100 turns call nextval(), to count the values that it repeats\n"
"  --copies N                and one that uses the database copy_0, and in N of 100 turns copies it and\n"
"                            goes on with the copy, copy_1, and so on\n"
"       ledger init                        print the SQL that makes what \"run\" needs, except sequences\n"
"       ledger step LOG FILE SETTING       set a clock by writing FILE, and log when\n"
"       ledger check [--steps LOG] LEDGER...    report what was found; status 1 if there is a fault\n"
"  --steps LOG               when clocks were set; excuses calls at that time\n"
"       ledger selftest                    plant faults, and see that they are found\n";

static const char *const init_sql =
"CREATE TABLE ledger_rows (id bigint);"
"CREATE SEQUENCE ledger_nextval_on;"
"CREATE SEQUENCE ledger_nextval_off;"
"CREATE SEQUENCE ledger_nextval_committed;"
"CREATE SEQUENCE ledger_nextval_replica;"
"CREATE SEQUENCE ledger_nextval_minimal;"
"CREATE TABLE ledger_ballast (n int PRIMARY KEY, pad text);"
"INSERT INTO ledger_ballast SELECT n, repeat('x', 500) FROM generate_series(1, 10000) n;";

int
main(int argc, char **argv)
{
	const char *verb = argc > 1 ? argv[1] : "";

	if (strcmp(verb, "run") == 0)
		return run(argc - 1, argv + 1);
	if (strcmp(verb, "init") == 0)
		return puts(init_sql) < 0;
	if (strcmp(verb, "step") == 0)
		return step(argc - 1, argv + 1);
	if (strcmp(verb, "check") == 0)
		return check(argc - 1, argv + 1);
	if (strcmp(verb, "selftest") == 0)
		return selftest();
	fputs(usage, stderr);
	return 2;
}
