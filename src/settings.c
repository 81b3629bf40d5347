/*-------------------------------------------------------------------------
 *
 * settings.c
 *	  The settings, the SQL functions that show and store "snowflake.shard",
 *	  and checks of arguments that several SQL functions share.
 *
 * This file does not know how an ID is made.  Of layouts it knows the largest
 * shard of Instagram's, up to which the setting goes.
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <limits.h>

#include "access/xact.h"
#include "commands/dbcommands.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/backend_status.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"

#include "compat.h"

#include "settings.h"

PG_FUNCTION_INFO_V1(snowflake_shard_setting);
PG_FUNCTION_INFO_V1(snowflake_set_shard);

/* A hundred years, in milliseconds */
#define MAX_LEAD_LIMIT		(100.0 * DAYS_PER_YEAR * SECS_PER_DAY * 1000.0)

/* The times are in milliseconds. */
static int	shard_setting = SHARD_UNSET;
static double max_lead = 1000.0;
static int	max_wait = 5000;

/* Has settings_define() done its work? */
static bool defined = false;

/*
 * Define the settings, if that has not been done yet.
 *
 * A session may have values for them before the library is loaded, for example
 * from ALTER DATABASE.  DefineCustom...Variable() puts these values into
 * effect, except in parallel mode, where PostgreSQL allows no setting to
 * change: there it would drop them with a warning, for the rest of the
 * session.  So if the library happens to be loaded in parallel mode, the
 * settings are not defined then, and whoever needs a value calls this first.
 */
void
settings_define(void)
{
	if (likely(defined) || IsInParallelMode())
		return;
	defined = true;

	DefineCustomIntVariable("snowflake.shard",
							"Shard number that next_id() without arguments puts into its IDs.",
							"-1 means that it is not set.",
							&shard_setting,
							SHARD_UNSET, SHARD_UNSET, SHARD_MAX,
							PGC_USERSET, 0,
							NULL, NULL, NULL);

	DefineCustomRealVariable("snowflake.max_lead",
							 "How far an ID's time may be ahead of the clock before next_id() waits.",
							 "0 means that it is never ahead.",
							 &max_lead,
							 1000.0, 0.0, MAX_LEAD_LIMIT,
							 PGC_SUSET, GUC_UNIT_MS,
							 NULL, NULL, NULL);

	DefineCustomIntVariable("snowflake.max_wait",
							"How long next_id() may wait for the clock to catch up.",
							"It fails immediately if the required wait is longer. A wait for just the next tick is always allowed.",
							&max_wait,
							5000, 0, INT_MAX,
							PGC_USERSET, GUC_UNIT_MS,
							NULL, NULL, NULL);

	MarkGUCPrefixReserved("snowflake");
}

GeneratorLimits
settings_limits(void)
{
	GeneratorLimits limits;

	settings_define();
	limits.max_lead = (int64) (max_lead * 1000.0);
	limits.max_wait = max_wait * INT64CONST(1000);
	return limits;
}

/*
 * The value of "snowflake.shard" while the library has been loaded in parallel
 * mode and the settings are not defined: to PostgreSQL it is still a text.
 * Later, settings_define() ignores a text that is no shard, and so does this.
 */
static int
undefined_shard(void)
{
	const char *text = GetConfigOption("snowflake.shard", true, false);
	int			value;

	if (text != NULL && parse_int(text, &value, 0, NULL) &&
		value >= SHARD_UNSET && value <= SHARD_MAX)
		return value;
	return SHARD_UNSET;
}

int64
settings_shard(void)
{
	int			shard;

	settings_define();
	shard = likely(defined) ? shard_setting : undefined_shard();
	if (shard == SHARD_UNSET)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("\"snowflake.shard\" is not set"),
				 errhint("The database's owner sets it with SELECT snowflake_set_shard(...), to a number that no other database has. Sessions that began before that must reconnect. SELECT * FROM snowflake_check(), of extension snowflake_admin, lists what needs it.")));
	return shard;
}

/* For functions that are not strict; "hint" may be NULL. */
void
argument_refuse_null(const char *argument, const char *hint)
{
	ereport(ERROR,
			(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
			 errmsg("%s must not be null", argument),
			 hint == NULL ? 0 : errhint("%s", hint)));
}

void
argument_check_id(int64 id)
{
	if (id < 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("ID %lld is not positive", (long long) id),
				 errdetail("Valid IDs are 1 to %lld.",
						   (long long) PG_INT64_MAX)));
}

/* snowflake_shard() */
Datum
snowflake_shard_setting(PG_FUNCTION_ARGS)
{
	(void) fcinfo;
	PG_RETURN_INT32((int32) settings_shard());
}

/*
 * Warn of each setting that new sessions of this database use in place of the
 * database's.
 *
 * PostgreSQL applies those of ALTER ROLE after that of ALTER DATABASE, and a
 * function's SET clause while the function runs.  It applies before that of
 * the database what is in a configuration file, on the command line of the
 * server, and from ALTER ROLE ALL.  What a client asks for when it connects
 * (PGOPTIONS) or later (SET) overrides all these, but nobody can look it up.
 */
static void
warn_of_overrides(void)
{
	SPI_execute(
		"SELECT format('role %I', rolname),"
		"       substr(setting, strpos(setting, '=') + 1),"
		"       format('ALTER ROLE %I%s RESET snowflake.shard', rolname,"
		"              CASE WHEN setdatabase <> 0 THEN format(' IN DATABASE %I', current_database()) END)"
		" FROM pg_db_role_setting"
		" JOIN pg_roles ON pg_roles.oid = setrole"
		" CROSS JOIN unnest(setconfig) AS setting"
		" WHERE lower(split_part(setting, '=', 1)) = 'snowflake.shard' AND"
		"       setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))"
		" UNION ALL "
		"SELECT format('function %s', pg_proc.oid::regprocedure),"
		"       substr(setting, strpos(setting, '=') + 1),"
		"       format('ALTER ROUTINE %s RESET snowflake.shard', pg_proc.oid::regprocedure)"
		" FROM pg_proc"
		" CROSS JOIN unnest(proconfig) AS setting"
		" WHERE lower(split_part(setting, '=', 1)) = 'snowflake.shard'"
		" ORDER BY 1, 3", true, 0);

	for (uint64 i = 0; i < SPI_processed; i++)
	{
		HeapTuple	tuple = SPI_tuptable->vals[i];
		TupleDesc	desc = SPI_tuptable->tupdesc;

		ereport(WARNING,
				(errcode(ERRCODE_WARNING),
				 errmsg("%s has the setting \"snowflake.shard\" = %s, which overrides the database's",
						SPI_getvalue(tuple, desc, 1),
						SPI_getvalue(tuple, desc, 2)),
				 errhint("To remove it, use %s.",
						 SPI_getvalue(tuple, desc, 3))));
	}
}

static void
name_databases_with(int64 shard)
{
	char	   *names;

	SPI_execute(psprintf(
		"SELECT string_agg(DISTINCT quote_ident(datname), ', ')"
		" FROM pg_db_role_setting"
		" JOIN pg_database ON pg_database.oid = setdatabase"
		" CROSS JOIN unnest(setconfig) AS setting"
		" WHERE lower(setting) = 'snowflake.shard=%lld' AND"
		"       datname <> current_database()",
		(long long) shard), true, 0);
	names = SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1);

	if (names != NULL)
		ereport(NOTICE,
				(errmsg("other databases of this server have the same \"snowflake.shard\": %s",
						names),
				 errhint("Each database needs its own number, unless its rows and theirs never meet.")));
}

static void
count_other_sessions(void)
{
	int			sessions = 0;

	/* The shared entries change while we look, so look at a new copy. */
	pgstat_clear_backend_activity_snapshot();
	for (int i = 1; i <= pgstat_fetch_stat_numbackends(); i++)
	{
		PgBackendStatus *entry = &pgstat_get_local_beentry_by_index(i)->backendStatus;

		if (entry->st_backendType == B_BACKEND &&
			entry->st_databaseid == MyDatabaseId &&
			entry->st_procpid != MyProcPid)
			sessions++;
	}

	if (sessions > 0)
		ereport(NOTICE,
				(errmsg_plural("%d other session of this database keeps its value of \"snowflake.shard\" until it reconnects",
							   "%d other sessions of this database keep their values of \"snowflake.shard\" until they reconnect",
							   sessions, sessions)));
}

/*
 * snowflake_set_shard(shard): store the shard for this database, and use it in
 * this session.  -1 and NULL remove the number.
 *
 * A rollback undoes both.
 */
Datum
snowflake_set_shard(PG_FUNCTION_ARGS)
{
	int64		shard = PG_ARGISNULL(0) ? SHARD_UNSET : PG_GETARG_INT64(0);
	const char *database;

	/* The library may have been loaded in parallel mode. */
	settings_define();
	PreventCommandDuringRecovery("snowflake_set_shard()");
	PreventCommandIfReadOnly("snowflake_set_shard()");
	PreventCommandIfParallelMode("snowflake_set_shard()");

	if (!pg_database_ownercheck(MyDatabaseId, GetUserId()))
		aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_DATABASE,
					   get_database_name(MyDatabaseId));
	if (shard < SHARD_UNSET || shard > SHARD_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("shard %lld is out of range", (long long) shard),
				 errdetail("Shards are 0 to %d; -1 or NULL removes the number.",
						   SHARD_MAX)));

	/* A database keeps its name while somebody is connected to it. */
	database = quote_identifier(get_database_name(MyDatabaseId));

	/* The function's SET clause makes these find PostgreSQL's own objects. */
	SPI_connect();
	SPI_execute(shard == SHARD_UNSET ?
				psprintf("ALTER DATABASE %s RESET snowflake.shard", database) :
				psprintf("ALTER DATABASE %s SET snowflake.shard = %lld",
						 database, (long long) shard),
				false, 0);
	warn_of_overrides();
	if (shard != SHARD_UNSET)
		name_databases_with(shard);
	SPI_finish();

	/*
	 * As SET does.  Not RESET for SHARD_UNSET: this session's value to go back
	 * to may be the one that has just been removed.
	 */
	SetConfigOption("snowflake.shard", psprintf("%lld", (long long) shard),
					PGC_USERSET, PGC_S_SESSION);
	count_other_sessions();
	PG_RETURN_VOID();
}
