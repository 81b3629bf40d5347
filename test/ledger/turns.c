/*-------------------------------------------------------------------------
 *
 * turns.c
 *	  What a session asks a server for, and how it notes the answers.
 *
 * Knows nothing of how a session finds its server, of what is wrong with an
 * ID, or of the ledger's files.
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ledger.h"

/*
 * In every other spell nobody writes anything: a commit flushes everybody's
 * WAL, and so do full buffers, which would hide that next_id() forgot to.
 */
#define SPELL				(3 * NSECS)

/*
 * What sessions send.  In a query, $S is the shard, $Q the sequence as
 * arguments of next_id(), $R the sequence's name, $L its layout as an argument if
 * it has one of its own, $A the ID to advance beyond, $N the count of IDs, and $T
 * a number that no other session has.  Each row has the clock, an ID or an array
 * of IDs, and the clock again, if there is anything to compare with it.
 */
typedef struct Query
{
	int			most;			/* IDs that it asks for; 0 if it is no call for IDs */
	const char *sql;
} Query;

#define CLOCK "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"

static const Query begin = {0, "BEGIN"};
static const Query commit = {0, "COMMIT"};
static const Query rollback = {0, "ROLLBACK"};
static const Query savepoint = {0, "SAVEPOINT s"};
static const Query rollback_to = {0, "ROLLBACK TO s"};

static const Query one = {1, "SELECT " CLOCK ", next_id($S, $Q), " CLOCK};

static const Query many = {500,
	"SELECT CASE WHEN i = 1 THEN " CLOCK " END, next_id($S, $Q),"
	" CASE WHEN i = $N THEN " CLOCK " END FROM generate_series(1, $N) i"};

static const Query insert = {10,
	"INSERT INTO ledger_rows SELECT next_id($S, $Q) FROM generate_series(1, $N)"
	" RETURNING NULL, id, " CLOCK};

static const Query batch = {MAX_BATCH, "SELECT NULL, id, NULL FROM next_ids($S, $N, $Q) id"};

static const Query array = {MAX_BATCH,
	"SELECT NULL, array_agg(id), " CLOCK " FROM next_ids($S, $N, $Q) id"};

static const Query insert_batch = {1000,
	"WITH i AS (INSERT INTO ledger_rows SELECT next_ids($S, $N, $Q) RETURNING id)"
	" SELECT NULL, array_agg(id), " CLOCK " FROM i"};

/* A table that is filled by COPY, and then rewritten */
static const Query copy_and_rewrite = {500,
	"BEGIN; CREATE TABLE ledger_copy_$T (n int, id bigint DEFAULT next_id($S, $Q));"
	" COPY ledger_copy_$T (n) FROM STDIN;"
	" ALTER TABLE ledger_copy_$T ADD again bigint DEFAULT next_id($S, $Q);"
	" SELECT NULL, array_agg(id) || array_agg(again), NULL FROM ledger_copy_$T;"
	" DROP TABLE ledger_copy_$T; COMMIT"};

/* A new file for the sequence, with the old one's count of values that are logged */
#define REWRITE_SEQUENCE \
	"BEGIN; SET LOCAL lock_timeout = 200;" \
	" ALTER SEQUENCE $R SET UNLOGGED; ALTER SEQUENCE $R SET LOGGED;"

static const Query rewrite_sequence = {0, REWRITE_SEQUENCE " COMMIT"};

static const Query rewrite_and_use = {MAX_BATCH,
	REWRITE_SEQUENCE " SELECT NULL, array_agg(id), NULL FROM next_ids($S, $N, $Q) id; COMMIT"};

static const Query advance = {0, "SELECT snowflake_advance('$R', $A$L)"};

/*
 * What a session does in one turn: a call by itself, or a transaction.
 */
typedef struct Turn
{
	char		kind;			/* names it in the report */
	int			weight;			/* how often, of 100 turns */
	int			quiet_weight;	/* the same, while nobody writes anything */
	const Query *queries[8];
} Turn;

static const Turn turns[] = {
	{'s', 25, 25, {&one}},
	{'b', 32, 30, {&many}},
	{'r', 9, 45, {&begin, &one, &many, &rollback}},
	{'r', 9, 0, {&begin, &one, &insert, &rollback}},
	{'c', 10, 0, {&begin, &insert, &one, &commit}},
	{'i', 5, 0, {&insert}},
	{'p', 3, 0, {&begin, &one, &savepoint, &insert, &rollback_to, &one, &commit}},
	{'p', 3, 0, {&begin, &one, &savepoint, &many, &rollback_to, &one, &commit}},
	{'p', 2, 0, {&begin, &one, &savepoint, &insert, &rollback_to, &one, &rollback}},
	{'p', 2, 0, {&begin, &one, &savepoint, &many, &rollback_to, &one, &rollback}},
};

static const Turn bulk_turns[] = {
	{'n', 15, 15, {&batch}},
	{'a', 45, 85, {&array}},
	{'I', 8, 0, {&insert_batch}},
	{'C', 16, 0, {&copy_and_rewrite}},
	{'w', 8, 0, {&rewrite_sequence}},
	{'w', 8, 0, {&rewrite_and_use}},
};

static const Turn advance_turns[] = {
	{'v', 70, 70, {&advance}},
	{'v', 15, 15, {&begin, &advance, &rollback}},
	{'v', 15, 15, {&begin, &one, &savepoint, &advance, &rollback_to, &one, &rollback}},
};

int
random_below(Session *session, int limit)
{
	return nrand48(session->dice) % limit;
}

/*
 * Wait for a result as PQgetResult() does.
 */
static PGresult *
await_result(Session *session)
{
	while (PQisBusy(session->conn))
	{
		struct pollfd socket = {PQsocket(session->conn), POLLIN, 0};

		/* Tell the other sessions of the IDs so far before there are more. */
		publish(session->ledger, &session->call);
		if (poll(&socket, 1, 100) > 0 && !PQconsumeInput(session->conn))
			break;				/* PQgetResult() tells the error */
	}
	return PQgetResult(session->conn);
}

/*
 * Begin a call of a random shard and, if it may, of a random sequence.
 *
 * With rewrites, the sequence is the same during a turn.  A transaction with
 * several sequences would deadlock with those that rewrite one, and PostgreSQL's
 * deadlock check comes late if the clock steps back.
 */
static void
start_call(Session *session, char kind)
{
	static const int shards[] = {5, 8191};
	const Options *options = session->options;
	Call	   *call = &session->call;

	if (!options->bulk)
		session->sequence = random_below(session, options->sequence_count);
	memset(call, 0, sizeof(Call));
	call->session = session->number;
	call->shard = shards[random_below(session, 2)];
	call->sequence = session->sequence;
	call->kind = kind;
	session->kept_count = 0;
	session->message[0] = '\0';
	begin_call(session->ledger, call);
	call->begin = monotonic();
}

/*
 * Choose an ID to advance beyond: an old one, or one up to some seconds after the
 * largest ID that any client has.  Small steps are frequent, because the sequence
 * is often beyond them already, by IDs that no client has received yet.
 */
static uint64_t
choose_target(Session *session, bool coarse)
{
	uint64_t	greatest = session->call.floor;

	if (random_below(session, 4) == 0)
		return greatest / 2;
	return greatest + random_below(session, 1 << random_below(session, coarse ? 12 : 22));
}

/*
 * Send a query, with the particulars of the session's call.
 */
static bool
send_query(Session *session, const char *text, int count)
{
	const char *name = session->options->sequences[session->sequence];
	int			length = strcspn(name, "=");
	char		sql[2048];
	char	   *end = sql;

	for (; *text != '\0'; text++)
	{
		if (*text != '$')
			*end++ = *text;
		else if (*++text == 'S')
			end += sprintf(end, "%u", session->call.shard);
		else if (*text == 'Q' && name[length] == '=')
			end += sprintf(end, "'%.*s', '%s'", length, name, name + length + 1);
		else if (*text == 'Q')
			end += sprintf(end, "'%s'", name);
		else if (*text == 'R')
			end += sprintf(end, "%.*s", length, name);
		else if (*text == 'L' && name[length] == '=')
			end += sprintf(end, ", '%s'", name + length + 1);
		else if (*text == 'A')
		{
			session->target = choose_target(session, name[length] == '=');
			end += sprintf(end, "%" PRIu64, VALUE_ID(session->target, session->call.shard));
		}
		else if (*text == 'N')
			end += sprintf(end, "%d", count);
		else if (*text == 'T')
			end += sprintf(end, "%d", session->number);
	}
	*end = '\0';

	/* Only the simple protocol takes several commands. */
	return (strchr(sql, ';') != NULL ? PQsendQuery(session->conn, sql) :
			PQsendQueryParams(session->conn, sql, 0, NULL, NULL, NULL, NULL, 0)) &&
		PQsetSingleRowMode(session->conn);
}

/*
 * Note the IDs and the clock in a row.  If a change of the sequence is rolled
 * back, its IDs come again, so those of such a call are kept until it commits.
 */
static void
take_row(Session *session, const PGresult *row)
{
	Call	   *call = &session->call;
	char	   *text = PQgetvalue(row, 0, 1);

	/* 1, or {1,2,3} */
	for (text += strspn(text, "{"); *text != '\0'; text += strspn(text, ",}"))
	{
		char	   *start = text;
		uint64_t	id = strtoull(text, &text, 10);

		if (text == start)
			errx(2, "\"%s\" is no ID", text);
		if (call->kind != 'w')
			receive(session->ledger, call, id);
		else
			session->kept[session->kept_count++] = id;
	}

	/* The times of other layouts have another unit than milliseconds. */
	if (strchr(session->options->sequences[session->sequence], '=') != NULL)
		return;
	if (call->clock_before == 0)
		call->clock_before = atoll(PQgetvalue(row, 0, 0));
	call->clock_after = atoll(PQgetvalue(row, 0, 2));
}

/*
 * Note what a result holds.
 */
static void
take_result(Session *session, const PGresult *result, int count)
{
	Call	   *call = &session->call;
	const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);

	if (PQresultStatus(result) == PGRES_SINGLE_TUPLE && count > 0)
		take_row(session, result);
	else if (PQresultStatus(result) == PGRES_COPY_IN)
	{
		/* The server tells its errors in the next result. */
		for (int i = 0; i < count && PQputCopyData(session->conn, "1\n", 2) == 1; i++)
			;
		PQputCopyEnd(session->conn, NULL);
	}
	/* The error of a lost connection follows the server's own. */
	else if (PQresultStatus(result) == PGRES_FATAL_ERROR && (sqlstate != NULL || call->sqlstate[0] == '\0'))
	{
		const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);

		snprintf(call->sqlstate, sizeof(call->sqlstate), "%s", sqlstate != NULL ? sqlstate : "08006");
		snprintf(session->message, sizeof(session->message), "%s", message != NULL ? message : "");
	}
}

/*
 * Ask for IDs, or for something that goes with them, and note what comes.
 * Returns whether the session can go on with its transaction.
 */
static bool
ask(Session *session, char kind, const Query *query)
{
	Call	   *call = &session->call;
	int			count = query->most > 0 ? 1 + random_below(session, query->most) : 0;
	PGresult   *result;

	start_call(session, kind);
	if (send_query(session, query->sql, count))
		while ((result = await_result(session)) != NULL)
		{
			take_result(session, result, count);
			PQclear(result);
		}
	if (call->sqlstate[0] == '\0' && PQstatus(session->conn) != CONNECTION_OK)
		strcpy(call->sqlstate, "08006");
	if (call->sqlstate[0] == '\0')
		for (int i = 0; i < session->kept_count; i++)
			receive(session->ledger, call, session->kept[i]);
	call->end = monotonic();

	/*
	 * From here on, IDs of all shards are larger, so they have a later
	 * millisecond.  Whether a transaction commits makes no difference.
	 */
	if (query == &advance && call->sqlstate[0] == '\0')
	{
		call->last = session->target | 1023;
		publish(session->ledger, call);
		count_up(session->ledger->state->advances, 1);
	}

	if (call->count > 0 || call->sqlstate[0] != '\0')
		end_call(session->ledger, call, session->message);
	return call->sqlstate[0] == '\0';
}

/*
 * Take a turn at random.
 */
bool
take_turn(Session *session)
{
	const Options *options = session->options;
	bool		write_nothing = options->quiet || monotonic() / SPELL % 2 != 0;
	int			table = options->bulk ? random_below(session, 10) : 9;
	const Turn *turn = table == 0 ? advance_turns : table == 1 ? bulk_turns : turns;
	int			left = random_below(session, 100);

	session->sequence = random_below(session, options->sequence_count);
	while ((left -= write_nothing ? turn->quiet_weight : turn->weight) >= 0)
		turn++;
	for (const Query *const *query = turn->queries; *query != NULL; query++)
		if (!ask(session, turn->kind, *query))
			return false;
	return true;
}
