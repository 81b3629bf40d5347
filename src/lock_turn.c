/*-------------------------------------------------------------------------
 *
 * lock_turn.c
 *	  A lock on a command's turn on a table, which only the table's owner gets.
 *
 * The commands of snowflake_admin that commit between their steps let one
 * session at a time work on a table, and wait for one another.  A lock that
 * everybody can take would let everybody stop them, for ever if it belongs to a
 * prepared transaction.  That is so for the advisory locks of SQL, and a lock
 * on the table itself that excludes others of its kind would end the vacuums
 * that a long command makes necessary.
 *
 * So this takes an advisory lock of a kind that no function of SQL can take:
 * PostgreSQL tells those with one key from those with two by the last field of
 * the lock's tag, 1 or 2.
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

/* The kind of our advisory locks, which pg_locks shows as objsubid */
#define TURN_LOCK	3

PG_FUNCTION_INFO_V1(snowflake_lock_turn);

/*
 * Lock the turn of a work on a table until the transaction ends.  Returns whether
 * we have the lock, which may be false only if we do not wait.
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
