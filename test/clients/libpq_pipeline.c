/*
 * libpq in pipeline mode: a thousand executions of a prepared statement are on their way before the first result is read.
 */
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>

static PGconn *db;

static void
fail(void)
{
	fprintf(stderr, "%s\n", PQerrorMessage(db));
	exit(1);
}

/* Send an execution of a prepared statement. */
static void
send(const char *statement, const char *value)
{
	if (!PQsendQueryPrepared(db, statement, 1, &value, NULL, NULL, 0))
		fail();
}

/* Receive the result of what was sent next, which has this status. */
static PGresult *
receive(ExecStatusType status)
{
	PGresult   *result = PQgetResult(db);

	if (PQresultStatus(result) != status)
		fail();
	/* NULL ends the results of each command, but not those of a synchronization. */
	if (status != PGRES_PIPELINE_SYNC && PQgetResult(db))
		fail();
	return result;
}

int
main(void)
{
	char		title[32];
	PGresult   *one;

	db = PQconnectdb("");
	if (PQstatus(db) != CONNECTION_OK || !PQenterPipelineMode(db) ||
		!PQsendPrepare(db, "photo", "INSERT INTO photos (title) VALUES ($1) RETURNING id", 0, NULL) ||
		!PQsendPrepare(db, "tag", "INSERT INTO tags (id) VALUES ($1) RETURNING id", 0, NULL))
		fail();
	send("photo", "one");
	for (int n = 0; n < 1000; n++)
	{
		snprintf(title, sizeof(title), "many %d", n);
		send("photo", title);
	}
	if (!PQpipelineSync(db))
		fail();

	receive(PGRES_COMMAND_OK);
	receive(PGRES_COMMAND_OK);
	one = receive(PGRES_TUPLES_OK);
	printf("one %s\nmany", PQgetvalue(one, 0, 0));
	for (int n = 0; n < 1000; n++)
		printf(" %s", PQgetvalue(receive(PGRES_TUPLES_OK), 0, 0));
	receive(PGRES_PIPELINE_SYNC);

	send("tag", PQgetvalue(one, 0, 0));
	if (!PQpipelineSync(db))
		fail();
	printf("\ntags %s\n", PQgetvalue(receive(PGRES_TUPLES_OK), 0, 0));
	printf("types libpq: text text\nversion libpq %d.%d\n", PQlibVersion() / 10000, PQlibVersion() % 10000);
	PQfinish(db);
	return 0;
}
