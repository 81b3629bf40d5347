/*-------------------------------------------------------------------------
 *
 * lock_turn.c
 *	  Locks of the commands of extension snowflake_admin: one by which they take
 *	  turns on a table, and which only the table's owner can take, and one that
 *	  keeps the extension from being dropped while they run.
 *
 * Commands that commit between their steps let one session at a time work on a
 * table.  Whoever can take the lock for that can stop them, for ever if the
 * lock belongs to a prepared transaction.  So neither of the usual locks would
 * do.  Anybody can take an advisory lock in SQL.  And a lock on the table that
 * excludes others of its kind would also exclude the vacuums that a long
 * command makes necessary.
 *
 * So this takes an advisory lock of a kind that PostgreSQL's SQL functions
 * never take: the last field of their tags, which says whether a lock has one
 * key or two, is 1 or 2.
 *
 * The other lock is PostgreSQL's own on the extension, which DROP EXTENSION
 * takes, too.  PL/pgSQL finds the functions that it calls by their names, one
 * statement after the other.  Whoever has created a trusted extension may drop
 * it meanwhile, create functions of the same names, and so have them called by
 * a superuser.  A command that commits needs the lock between its transactions,
 * too.  So that lock is the session's, which PostgreSQL releases by itself
 * when a transaction is aborted: an error, wherever it is raised, leaves
 * nothing behind in a pooled session.
 *
 * This file does not know what the commands do.
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/pg_class.h"
#include "catalog/pg_extension.h"
#include "catalog/pg_proc.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "storage/lock.h"
#include "utils/acl.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"

#include "compat.h"

/* The last field of our tags, which pg_locks shows as objsubid */
#define TURN_LOCK	3

PG_FUNCTION_INFO_V1(snowflake_lock_turn);
PG_FUNCTION_INFO_V1(snowflake_keep_extension);
PG_FUNCTION_INFO_V1(snowflake_release_extension);

/*
 * snowflake_lock_turn(work, tab, wait): lock a table for one kind of work, which
 * is a number of the caller's, until the transaction ends.  Returns whether we
 * have the lock, which we always do after waiting for it.
 */
Datum
snowflake_lock_turn(PG_FUNCTION_ARGS)
{
	int32		work = PG_GETARG_INT32(0);
	Oid			relation = PG_GETARG_OID(1);
	bool		wait = PG_GETARG_BOOL(2);
	LOCKTAG		tag;

	/* Check this before we wait, as LOCK TABLE does. */
	if (!pg_class_ownercheck(relation, GetUserId()))
		aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_TABLE, get_rel_name(relation));

	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, (uint32) work, relation, TURN_LOCK);
	PG_RETURN_BOOL(LockAcquire(&tag, ExclusiveLock, false, !wait) != LOCKACQUIRE_NOT_AVAIL);
}

/*
 * The extension of which the function that is being called is a member, found
 * by that function's OID, which nobody can give to another one
 */
static Oid
own_extension(FunctionCallInfo fcinfo)
{
	return getExtensionOfObject(ProcedureRelationId, fcinfo->flinfo->fn_oid);
}

/*
 * The code of tables runs in the same session, as a role that must not end what
 * protects the caller.
 */
static void
require_caller(void)
{
	if (InSecurityRestrictedOperation())
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg_internal("cannot lock extension \"%s\" for a session within a security-restricted operation",
						"snowflake_admin")));
}

/*
 * snowflake_keep_extension(beyond): keep the extension from being dropped until
 * the transaction ends, or beyond that.
 */
Datum
snowflake_keep_extension(PG_FUNCTION_ARGS)
{
	bool		beyond = PG_GETARG_BOOL(0);
	Oid			extension = own_extension(fcinfo);
	LOCKTAG		tag;

	if (beyond)
	{
		require_caller();

		/*
		 * The COMMIT that follows would raise this error.  Whoever catches it
		 * would go on with the session's lock.
		 */
		if (GetCurrentTransactionNestLevel() > 1)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_TRANSACTION_TERMINATION),
					 errmsg_internal("cannot commit while a subtransaction is active")));
	}
	if (OidIsValid(extension))
	{
		SET_LOCKTAG_OBJECT(tag, MyDatabaseId, ExtensionRelationId, extension, 0);
		(void) LockAcquire(&tag, AccessShareLock, beyond, false);
		AcceptInvalidationMessages();
	}

	/* It may have been dropped before we had the lock. */
	if (!OidIsValid(extension) || own_extension(fcinfo) != extension)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("extension \"%s\" was dropped by a concurrent transaction", "snowflake_admin")));
	PG_RETURN_VOID();
}

/*
 * snowflake_release_extension(): release the lock that lasts beyond the
 * transaction.
 */
Datum
snowflake_release_extension(PG_FUNCTION_ARGS)
{
	LOCKTAG		tag;

	require_caller();
	SET_LOCKTAG_OBJECT(tag, MyDatabaseId, ExtensionRelationId, own_extension(fcinfo), 0);
	(void) LockRelease(&tag, AccessShareLock, true);
	PG_RETURN_VOID();
}
