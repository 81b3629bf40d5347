/*-------------------------------------------------------------------------
 *
 * as_owner.c
 *	  Run a command as the owner of a table, for extension snowflake_admin.
 *
 * A command that reads or changes a table runs what the table's owner made:
 * triggers, index expressions, some of them while the command is planned,
 * CHECK constraints, defaults and policies.  Superusers call snowflake_admin
 * for everybody's tables, and must not run all that with their rights.  So
 * such a command runs as the table's owner, as PostgreSQL does it in REINDEX
 * and in logical replication.  What would reach beyond the command is forbidden
 * or undone:
 *
 * - SECURITY_LOCAL_USERID_CHANGE refuses SET ROLE and SET SESSION
 * AUTHORIZATION.  SET LOCAL ROLE in place of this file would not do, because
 * the owner's code could RESET ROLE: the user of the session is the superuser.
 *
 * - SECURITY_RESTRICTED_OPERATION refuses what would run or stay after the
 * command, for example deferred triggers, temporary tables and cursors WITH
 * HOLD.
 *
 * - What the code sets is undone, because a search_path would make the
 * caller's next statement run other functions.
 *
 * - A cursor that the code leaves open is an error, also if it has the name of
 * one of the caller's that the code has closed.  The caller's next FETCH would
 * run its query, and so would PostgreSQL when the caller's procedure commits,
 * because some procedural languages keep the cursors of their functions.
 *
 * The last three are only for an owner who cannot SET ROLE to the caller.  A
 * caller who changes a table with deferred foreign keys must first use SET
 * CONSTRAINTS ALL IMMEDIATE.
 *
 * The command's rows are returned as they are.  A cast to another type could
 * be the owner's, and would run with the caller's rights.
 *
 * This file knows nothing of IDs and sequences, nor of what it runs.
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "executor/tstoreReceiver.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/params.h"
#include "tcop/dest.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/portal.h"
#include "utils/syscache.h"

#include "compat.h"

#include "arguments.h"

PG_FUNCTION_INFO_V1(snowflake_as_owner);
PG_FUNCTION_INFO_V1(snowflake_do_as_owner);

/* The state of the session before switch_to_owner(), for switch_back() */
typedef struct Caller
{
	Oid			user;
	int			sec_context;
	int			guc_level;		/* what is set at this level is undone, or 0 */
} Caller;

/*
 * Switch to the owner of a relation, if the current user may SET ROLE to it.
 *
 * Whoever owned the relation when we looked is the owner.  If that changes
 * meanwhile, the command has the rights of the former owner, to whom the
 * caller could SET ROLE, too.
 *
 * An error needs no care: the rollback of the transaction or subtransaction
 * restores the user and the settings.
 */
static void
switch_to_owner(Oid relid, Caller *caller)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	Oid			owner;
	int			sec_context;

	if (!HeapTupleIsValid(tuple))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation with OID %u does not exist", relid)));
	owner = ((Form_pg_class) GETSTRUCT(tuple))->relowner;

	GetUserIdAndSecContext(&caller->user, &caller->sec_context);
	if (!member_can_set_role(caller->user, owner))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("must be able to SET ROLE \"%s\"",
						GetUserNameFromId(owner, false)),
				 errdetail("This role owns \"%s\".",
						   NameStr(((Form_pg_class) GETSTRUCT(tuple))->relname))));
	ReleaseSysCache(tuple);

	sec_context = caller->sec_context | SECURITY_LOCAL_USERID_CHANGE;
	caller->guc_level = 0;
	if (!member_can_set_role(owner, caller->user))
	{
		sec_context |= SECURITY_RESTRICTED_OPERATION;
		caller->guc_level = NewGUCNestLevel();
	}
	SetUserIdAndSecContext(owner, sec_context);
}

/* Undo what was set since switch_to_owner(), and switch back to the caller. */
static void
switch_back(const Caller *caller)
{
	if (caller->guc_level > 0)
		AtEOXact_GUC(false, caller->guc_level);
	SetUserIdAndSecContext(caller->user, caller->sec_context);
}

/* A portal that was open before switch_to_owner() */
typedef struct OpenPortal
{
	char	   *name;
	bool		was_pinned;
} OpenPortal;

/*
 * The names of the portals that are open, except that of a simple query, which
 * is active
 */
static List *
portal_names(void)
{
	List	   *names = NIL;

	if (SPI_execute("SELECT name FROM pg_catalog.pg_cursor()", true, 0) != SPI_OK_SELECT)
		elog(ERROR, "could not list the open cursors");
	for (uint64 i = 0; i < SPI_processed; i++)
		names = lappend(names, SPI_getvalue(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 1));
	return names;
}

/*
 * Pin all open portals, so that CLOSE fails.  PL/Perl closes pinned ones, too,
 * by any name.  What takes the place of such a portal is not pinned when the
 * command ends: a language keeps only portals with generated names pinned for
 * longer than a loop.
 */
static List *
pin_portals(void)
{
	List	   *portals = NIL;
	ListCell   *cell;

	foreach(cell, portal_names())
	{
		OpenPortal *open = palloc(sizeof(OpenPortal));
		Portal		portal = GetPortalByName(lfirst(cell));

		open->name = lfirst(cell);
		open->was_pinned = portal->portalPinned;
		portals = lappend(portals, open);
	}
	/* Nothing fails from here on, so that unpin_portals() knows of all. */
	foreach(cell, portals)
	{
		OpenPortal *open = lfirst(cell);

		if (!open->was_pinned)
			PinPortal(GetPortalByName(open->name));
	}
	return portals;
}

/* Undo pin_portals(), also after an error. */
static void
unpin_portals(List *portals)
{
	ListCell   *cell;

	foreach(cell, portals)
	{
		OpenPortal *open = lfirst(cell);
		Portal		portal = GetPortalByName(open->name);

		if (!open->was_pinned && PortalIsValid(portal) && portal->portalPinned)
			UnpinPortal(portal);
	}
}

/* Raise an error if a cursor is open that pin_portals() has not seen. */
static void
refuse_new_cursors(List *portals)
{
	ListCell   *name;

	foreach(name, portal_names())
	{
		bool		is_old = false;
		ListCell   *cell;

		foreach(cell, portals)
		{
			if (strcmp(((OpenPortal *) lfirst(cell))->name, lfirst(name)) == 0)
				is_old = GetPortalByName(lfirst(name))->portalPinned;
		}
		if (!is_old)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("code of a table left cursor \"%s\" open", (char *) lfirst(name)),
					 errhint("Call this as the owner of the table, or change its triggers and functions so that they close their cursors.")));
	}
}

/*
 * The arguments of a call after the second one, as parameters $1 and so on, or
 * NULL if there are none
 */
static ParamListInfo
parameters(FunctionCallInfo fcinfo)
{
	ParamListInfo params;
	Datum	   *values = NULL;
	bool	   *nulls = NULL;
	Oid		   *types = NULL;
	int			count = 0;

	if (PG_NARGS() > 2)
		count = extract_variadic_args(fcinfo, 2, false, &values, &types, &nulls);
	if (count < 0)
		arguments_refuse_null("the array of parameters", NULL);
	/* As SPI has it.  Citus crashes with an empty list. */
	if (count == 0)
		return NULL;

	params = makeParamList(count);
	for (int i = 0; i < count; i++)
	{
		/* What a literal without a type means is for the caller to say. */
		if (types[i] == UNKNOWNOID)
			ereport(ERROR,
					(errcode(ERRCODE_INDETERMINATE_DATATYPE),
					 errmsg("parameter $%d has no type", i + 1),
					 errhint("Cast it to the type that the command needs.")));
		params->params[i] = (ParamExternData) {
			.value = values[i],
			.isnull = nulls[i],
			.pflags = PARAM_FLAG_CONST,
			.ptype = types[i]
		};
	}
	return params;
}

/*
 * Run the command of a call as the owner of its relation, and send its rows to
 * "dest".  Returns how many rows it processed.
 *
 * SPI takes a new snapshot for it.
 */
static uint64
run_as_owner(FunctionCallInfo fcinfo, bool must_return_rows, DestReceiver *dest)
{
	SPIExecuteOptions options = {
		.must_return_tuples = must_return_rows,
		.dest = dest
	};
	const char *command;
	List	   *volatile portals = NIL;
	Caller		caller;
	volatile uint64 rows;

	if (PG_ARGISNULL(0))
		arguments_refuse_null("owner_of", NULL);
	if (PG_ARGISNULL(1))
		arguments_refuse_null("command", NULL);
	command = text_to_cstring(PG_GETARG_TEXT_PP(1));
	options.params = parameters(fcinfo);

	SPI_connect();
	switch_to_owner(PG_GETARG_OID(0), &caller);
	if (caller.guc_level > 0)
		portals = pin_portals();
	PG_TRY();
	{
		if (SPI_execute_extended(command, &options) < 0)
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("cannot run \"%s\" as the owner of a table", command),
					 errdetail("It controls transactions, or is a COPY from or to the client.")));
		rows = SPI_processed;
		switch_back(&caller);
		if (caller.guc_level > 0)
			refuse_new_cursors(portals);
	}
	PG_FINALLY();
	{
		unpin_portals(portals);
	}
	PG_END_TRY();
	SPI_finish();
	return rows;
}

/* snowflake_as_owner(owner_of, command, ...): the rows of a query */
Datum
snowflake_as_owner(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	DestReceiver *dest = CreateTuplestoreDestReceiver();

	if (rsinfo == NULL || !IsA(rsinfo, ReturnSetInfo) || rsinfo->expectedDesc == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_SYNTAX_ERROR),
				 errmsg("a column definition list is needed for the rows of a command")));
	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);

	/* The receiver takes rows of exactly these types, and converts nothing. */
	SetTuplestoreDestReceiverParams(dest, rsinfo->setResult,
									rsinfo->econtext->ecxt_per_query_memory, false,
									rsinfo->setDesc,
									"rows of the command do not fit the column definition list");
	run_as_owner(fcinfo, true, dest);
	dest->rDestroy(dest);
	return (Datum) 0;
}

/* snowflake_do_as_owner(owner_of, command, ...): how many rows it processed */
Datum
snowflake_do_as_owner(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64((int64) run_as_owner(fcinfo, false, None_Receiver));
}
