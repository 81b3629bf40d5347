/*-------------------------------------------------------------------------
 *
 * lock_turn.c
 *	  A lock by which commands take turns on a table, and which only the table's
 *	  owner can take, for extension snowflake_admin.
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
 * This file does not know what the commands do.
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_class.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "storage/lock.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"

#include "compat.h"

/* The last field of our tags, which pg_locks shows as objsubid */
#define TURN_LOCK	3

PG_FUNCTION_INFO_V1(snowflake_lock_turn);

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
