/*-------------------------------------------------------------------------
 *
 * shard_functions.c
 *	  SQL functions that show and store the setting "snowflake.shard".
 *
 * This file does not know how an ID is generated.
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_database.h"
#include "commands/dbcommands.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/backend_status.h"
#include "utils/builtins.h"
#include "utils/guc.h"

#include "compat.h"

#include "settings.h"

PG_FUNCTION_INFO_V1(snowflake_shard_setting);
PG_FUNCTION_INFO_V1(snowflake_set_shard);

/* snowflake_shard(): the shard of the setting */
Datum
snowflake_shard_setting(PG_FUNCTION_ARGS)
{
	(void) fcinfo;
	PG_RETURN_INT32((int32) settings_get_shard());
}

/*
 * Warn of each setting that new sessions of this database use in place of the
 * database's.
 *
 * Those of ALTER ROLE override that of ALTER DATABASE, which overrides those of
 * ALTER ROLE ALL, the server's command line and its configuration files.  What
 * a client asks for when it connects (PGOPTIONS) or later (SET) overrides them,
 * but nobody can look it up.  A function's SET clause overrides all others
 * while the function runs.
 */
static void
warn_of_overrides(void)
{
	SPI_execute(
		"SELECT format('role %I', rolname),"
		"       substr(setting, strpos(setting, '=') + 1),"
		"       format('That role, or one that may alter it, can remove it by ALTER ROLE %I%s RESET snowflake.shard.',"
		"              rolname, CASE WHEN setdatabase <> 0 THEN format(' IN DATABASE %I', current_database()) END)"
		" FROM pg_db_role_setting"
		" JOIN pg_roles ON pg_roles.oid = setrole"
		" CROSS JOIN unnest(setconfig) AS setting"
		" WHERE lower(split_part(setting, '=', 1)) = 'snowflake.shard' AND"
		"       setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))"
		" UNION ALL "
		"SELECT format('function %s', pg_proc.oid::regprocedure),"
		"       substr(setting, strpos(setting, '=') + 1),"
		"       format('Its owner can remove it by ALTER ROUTINE %s RESET snowflake.shard.', pg_proc.oid::regprocedure)"
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
				 errhint("%s", SPI_getvalue(tuple, desc, 3))));
	}
}

/*
 * Say which other databases of this server store the same shard, be it for all
 * roles or for one: their IDs could be equal to ours.  There may be a reason
 * for it.
 */
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
				 errhint("Each database needs its own shard, unless its rows are never combined with theirs.")));
}

/*
 * Say how many other sessions of this database keep their values, as ALTER
 * DATABASE is only for new ones.
 */
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
 * this session.  -1 and NULL remove the setting.
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
				 errdetail("Shards are 0 to %d; -1 or NULL removes the setting.",
						   SHARD_MAX)));

	/*
	 * Let one call at a time store a shard for this database, because ALTER
	 * DATABASE SET fails if another transaction changes the same settings.
	 * This lock excludes others of its kind, but no new sessions.
	 */
	LockSharedObject(DatabaseRelationId, MyDatabaseId, 0, ShareUpdateExclusiveLock);

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
