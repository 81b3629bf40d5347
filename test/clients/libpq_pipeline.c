/*
 * libpq in pipeline mode.  test/external/clients.pl compares what this prints with the
 * tables.
 */
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BULK 10000
#define ID_SIZE 24

static PGconn *db;

static void
fail(const char *message)
{
	fprintf(stderr, "%s", message);
	exit(1);
}

static void
send(const char *sql, int count, const char *const *values)
{
	if (!PQsendQueryParams(db, sql, count, NULL, values, NULL, NULL, 0))
		fail(PQerrorMessage(db));
}

/* Read the next result; print its first column after "what", or keep its last. */
static void
receive(const char *what, char *last)
{
	PGresult   *result = PQgetResult(db);

	if (PQresultStatus(result) != PGRES_TUPLES_OK && PQresultStatus(result) != PGRES_COMMAND_OK)
		fail(PQerrorMessage(db));
	if (what)
		printf("%s", what);
	for (int row = 0; row < PQntuples(result); row++)
	{
		if (what)
			printf(" %s", PQgetvalue(result, row, 0));
		if (last)
			snprintf(last, ID_SIZE, "%s", PQgetvalue(result, row, 0));
	}
	PQclear(result);
	/* NULL: the end of this query's results */
	PQgetResult(db);
}

static void
sync_pipeline(void)
{
	if (!PQpipelineSync(db))
		fail(PQerrorMessage(db));
}

static void
receive_sync(void)
{
	PGresult   *result = PQgetResult(db);

	if (PQresultStatus(result) != PGRES_PIPELINE_SYNC)
		fail("no end of the pipeline\n");
	PQclear(result);
}

int
main(void)
{
	static char ids[BULK][ID_SIZE];
	char		photo_id[ID_SIZE],
				pair[2][ID_SIZE],
				last[ID_SIZE],
				hour_ago[32],
				title[32];
	time_t		then = time(NULL) - 3600;
	const char *values[3];

	db = PQconnectdb("");
	if (PQstatus(db) != CONNECTION_OK || !PQenterPipelineMode(db))
		fail(PQerrorMessage(db));

	/* The column's default makes the ID; RETURNING brings it back. */
	values[0] = "draft";
	send("INSERT INTO photos (title) VALUES ($1) RETURNING id", 1, values);
	/* IDs taken first, for rows that refer to each other */
	send("SELECT next_id(5)", 0, NULL);
	send("SELECT next_id(5)", 0, NULL);
	sync_pipeline();
	receive("one", photo_id);
	receive(NULL, pair[0]);
	receive(NULL, pair[1]);
	receive_sync();
	printf("\npair %s %s\n", pair[0], pair[1]);

	/* Insert or update by ID. */
	values[0] = photo_id;
	values[1] = "first";
	send("INSERT INTO photos (id, title) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET title = excluded.title", 2, values);
	/* Up to the end of the pipeline, this is one transaction. */
	values[0] = pair[0];
	values[1] = "album";
	values[2] = pair[1];
	send("INSERT INTO albums (id, title, cover_id) VALUES ($1, $2, $3)", 3, values);
	values[0] = pair[1];
	values[1] = "cover";
	values[2] = pair[0];
	send("INSERT INTO photos (id, title, album_id) VALUES ($1, $2, $3)", 3, values);
	sync_pipeline();
	for (int i = 0; i < 3; i++)
		receive(NULL, NULL);
	receive_sync();

	/* Many rows, a thousand of them on their way at a time */
	for (int n = 0; n < BULK; n += 1000)
	{
		for (int i = n; i < n + 1000; i++)
		{
			snprintf(title, sizeof(title), "bulk %d", i);
			values[0] = title;
			send("INSERT INTO photos (title) VALUES ($1) RETURNING id", 1, values);
		}
		sync_pipeline();
		for (int i = n; i < n + 1000; i++)
			receive(NULL, ids[i]);
		receive_sync();
	}
	printf("bulk");
	for (int n = 0; n < BULK; n++)
		printf(" %s", ids[n]);

	/* A page of the newest, and the one that follows it. */
	send("SELECT id FROM photos ORDER BY id DESC LIMIT 20", 0, NULL);
	sync_pipeline();
	receive("\npages", last);
	receive_sync();
	values[0] = last;
	send("SELECT id FROM photos WHERE id < $1 ORDER BY id DESC LIMIT 20", 1, values);

	/* When a row was made, and the rows of the last hour. */
	values[0] = photo_id;
	send("SELECT (extract(epoch FROM snowflake_timestamp($1)) * 1000)::bigint", 1, values);
	strftime(hour_ago, sizeof(hour_ago), "%Y-%m-%dT%H:%M:%SZ", gmtime(&then));
	values[0] = hour_ago;
	send("SELECT id FROM photos WHERE id >= snowflake_min_id($1) ORDER BY id", 1, values);
	/* An ID of the type snowflake is text, as any other. */
	values[0] = photo_id;
	send("INSERT INTO tags (id) VALUES ($1) RETURNING id", 1, values);
	sync_pipeline();
	receive("", NULL);
	receive("\nmade", NULL);
	receive("\nrecent", NULL);
	receive("\ntags", NULL);
	receive_sync();
	printf("\ntypes libpq: text text");
	printf("\nversion libpq %d.%d\n", PQlibVersion() / 10000, PQlibVersion() % 10000);
	PQfinish(db);
	return 0;
}
