/*-------------------------------------------------------------------------
 *
 * settled.c
 *	  snowflake_settled_id(): which IDs can no transaction add any more?
 *
 * A transaction that has taken an ID may commit at any time later.  A program
 * that reads new rows by their IDs must not read beyond the IDs of such
 * transactions, because it would not come back for the rows that they commit.
 *
 * next_id() locks the sequence in mode ROW EXCLUSIVE before it reads the
 * clock, and its transaction holds this lock until it ends.  Each ID has the
 * time of the clock reading, or a later one.  So first read the clock, and
 * then look who has such a lock:
 *
 * - A transaction that gets its first lock after the look reads the clock
 * after we did.  Its IDs have the time of our reading, or a later one.
 *
 * - A transaction that has a lock at the look may have taken IDs before.  Its
 * IDs have the time of its start, or a later one.
 *
 * - A transaction that had released its lock before the look had ended before
 * that, because PostgreSQL first takes a transaction off the list of running
 * ones, and only then releases its locks.  So our next statement sees what it
 * has committed.
 *
 * So the bound is the earliest of these times: our reading of the clock, and
 * the starts of the transactions that have such a lock.
 *
 * Looking for running transactions instead of locks would not be enough.  The
 * start of a transaction is when the client's message came, which may be long
 * before others can see that the transaction runs.
 *
 * This holds for IDs that the transaction which inserts them has taken from
 * next_id(), while the clock is not set back.  An ID that was taken in an earlier
 * transaction, composed by snowflake_id() or brought by replication may be below
 * the bound.
 *
 * Where Citus distributes tables there is no such bound.  A transaction takes
 * IDs on one node, and commits rows on others.  When it has committed on the
 * node where it took the IDs, rows on other nodes may still be in a prepared
 * transaction, of which that node knows nothing.
 *
 * Of the generator this file knows that it locks before it reads the clock.
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/table.h"
#include "access/twophase.h"
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "storage/lock.h"
#include "utils/backend_status.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"

#include "compat.h"

#include "layout_type.h"

PG_FUNCTION_INFO_V1(snowflake_settled_id);

/*
 * Fail if Citus manages tables of this database.  It lists them in a catalog,
 * on every node, and only a superuser can create a table in that schema.
 */
static void
refuse_citus(void)
{
	Oid			catalog = get_relname_relid("pg_dist_partition", PG_CATALOG_NAMESPACE);
	Relation	relation;
	SysScanDesc scan;

	if (!OidIsValid(catalog))
		return;
	relation = table_open(catalog, AccessShareLock);
	scan = systable_beginscan(relation, InvalidOid, false, NULL, 0, NULL);
	if (HeapTupleIsValid(systable_getnext(scan)))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot tell which IDs are settled where Citus distributes tables"),
				 errdetail("Rows whose IDs were generated on one node are committed on other nodes later."),
				 errhint("Read new rows by logical decoding on each node, with \"citus.enable_change_data_capture\" set to on.")));
	systable_endscan(scan);
	table_close(relation, AccessShareLock);
}

/*
 * May somebody take IDs under this lock?
 *
 * A relation that we do not find may be a sequence of a transaction that is
 * still running.  If it is gone since our look, start_of_taker() finds that
 * its taker has ended.
 */
static bool
is_lock_of_taker(const LockInstanceData *lock)
{
	char		relkind;

	if (lock->locktag.locktag_type != LOCKTAG_RELATION ||
		lock->locktag.locktag_field1 != MyDatabaseId ||
		(lock->holdMask & LOCKBIT_ON(RowExclusiveLock)) == 0)
		return false;

	relkind = get_rel_relkind(lock->locktag.locktag_field2);
	return relkind == RELKIND_SEQUENCE || relkind == '\0';
}

/*
 * Fail because of a prepared transaction, which any role may leave behind, and
 * name it, since only the role that has prepared it and superusers can end it.
 * Its name is only in the view.
 */
static void
refuse_prepared(VirtualTransactionId vxid)
{
	const char *query = "SELECT gid, owner FROM pg_catalog.pg_prepared_xacts"
		" WHERE transaction OPERATOR(pg_catalog.=) $1";
	const char *gid = NULL;
	const char *owner = NULL;
	bool		more = false;
	TransactionId xid = TwoPhaseGetXidByVirtualXID(vxid, &more);

	/*
	 * The virtual transaction ID may have been that of several prepared
	 * transactions, as PostgreSQL uses it again.  Then name none of them.
	 */
	if (TransactionIdIsValid(xid) && !more)
	{
		SPI_connect();
		if (SPI_execute_with_args(query, 1, (Oid[]) {XIDOID}, (Datum[]) {TransactionIdGetDatum(xid)},
								  NULL, true, 1) == SPI_OK_SELECT && SPI_processed == 1)
		{
			gid = SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1);
			owner = SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 2);
		}
	}
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("cannot tell which IDs are settled while a prepared transaction may have taken some"),
			 gid == NULL || owner == NULL ?
			 errhint("End it with COMMIT PREPARED or ROLLBACK PREPARED. The view pg_prepared_xacts lists the prepared transactions.") :
			 errhint("Role \"%s\", which prepared it, or a superuser can end it with COMMIT PREPARED %s or ROLLBACK PREPARED %s.",
					 owner, quote_literal_cstr(gid), quote_literal_cstr(gid))));
}

/*
 * The start of the transaction that had a lock, or PG_INT64_MAX if it has
 * ended.
 *
 * The order matters.  Read the start of the process's transaction first.  It
 * is the taker's only if the taker is still in progress afterwards, as the
 * process may have begun another transaction since our look.  A taker that was
 * prepared meanwhile is in progress, too, while the start may be that of the
 * process's next transaction.  So look for prepared ones last.
 */
static TimestampTz
start_of_taker(const LockInstanceData *lock)
{
	VirtualTransactionId vxid = LockHolder(lock);
	TimestampTz start = 0;
	bool		prepared = lock->pid == 0;	/* nobody is its process */

	if (!prepared)
	{
		bool		more = false;

		/*
		 * A transaction loses its local transaction ID when it leaves the list
		 * of running transactions, before it releases its locks.
		 */
		if (!LocalTransactionIdIsValid(vxid.localTransactionId))
			return PG_INT64_MAX;

		for (int i = 1; i <= pgstat_fetch_stat_numbackends(); i++)
		{
			PgBackendStatus *entry = &pgstat_get_local_beentry_by_index(i)->backendStatus;

			if (entry->st_procpid == lock->pid)
				start = entry->st_xact_start_timestamp;
		}
		if (VirtualXactLock(vxid, false))
			return PG_INT64_MAX;
		prepared = TransactionIdIsValid(TwoPhaseGetXidByVirtualXID(vxid, &more));
	}
	if (prepared)
		refuse_prepared(vxid);

	if (start == 0)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot tell which IDs are settled while process %d hides when its transaction began",
						lock->pid),
				 errdetail("\"track_activities\" is off in that session, or was when the transaction began."),
				 errhint("Set \"track_activities\" to on for all roles that insert rows.")));
	return start;
}

/*
 * A time such that all transactions of this database that have taken an ID of
 * an earlier time have ended, or are our own
 */
static TimestampTz
settled_time(void)
{
	TimestampTz settled = GetCurrentTimestamp();
	LockData   *locks = GetLockStatusData();

	/* Starts must be read after the look, not be kept from an earlier one. */
	pgstat_clear_backend_activity_snapshot();

	/*
	 * Let is_lock_of_taker() find what others have made since.  A relation
	 * that it does not find counts as a sequence.
	 */
	AcceptInvalidationMessages();

	for (int i = 0; i < locks->nelements; i++)
	{
		const LockInstanceData *lock = &locks->locks[i];

		if (lock->pid != MyProcPid && is_lock_of_taker(lock))
		{
			/* Min() would look twice. */
			TimestampTz start = start_of_taker(lock);

			settled = Min(settled, start);
		}
	}
	return settled;
}

/*
 * snowflake_settled_id([layout]): a bound below which no other transaction will
 * add an ID that it takes itself from next_id()
 */
Datum
snowflake_settled_id(PG_FUNCTION_ARGS)
{
	const Layout *layout = layout_type_argument(fcinfo, 0);

	/* On a standby, the rows of a transaction come when it is replayed. */
	PreventCommandDuringRecovery("snowflake_settled_id()");

	if (IsolationUsesXactSnapshot())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot use %s in a transaction with isolation level REPEATABLE READ or SERIALIZABLE",
						"snowflake_settled_id()"),
				 errdetail("Its statements do not see what others have committed since it began."),
				 errhint("Use isolation level READ COMMITTED.")));

	refuse_citus();
	layout_type_require_time(layout);

	/*
	 * The first ID of the tick in which that time is.  The smallest ID of the
	 * time itself may be of the tick after it.
	 */
	PG_RETURN_INT64(layout_min_id(layout,
								  settled_time() - layout->spec.tick_usecs + 1));
}
