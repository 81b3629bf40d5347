/*-------------------------------------------------------------------------
 *
 * keep_privileges.c
 *	  Keeps the privileges on a relation, and the definition of a sequence, as
 *	  they are until the transaction ends, for extension snowflake_admin.
 *
 * A command that puts a new object in the place of another one reads what
 * privileges that has, and grants them on the new one.  No lock in SQL keeps
 * them from changing after it has read them.  GRANT and REVOKE change a row of
 * pg_class or pg_attribute.  Before PostgreSQL 18, they lock no table, and even
 * then, LOCK TABLE takes no sequence.
 *
 * So this writes these rows anew as they are.  Whoever is changing one of them
 * now is waited for.  Whoever does it later waits for us and, unless our
 * transaction is rolled back, fails with "tuple concurrently updated".  So no
 * GRANT that succeeds is lost.
 *
 * This file does not know what the privileges are.
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/indexing.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_class.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/acl.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "compat.h"

PG_FUNCTION_INFO_V1(snowflake_keep_privileges);

/*
 * Write a row of a catalog anew as it is, if it is there.  The row is copied
 * from its page, not from the cache, when nobody else can change it any more.
 */
static void
rewrite_row(Relation catalog, int cache, Oid relation, AttrNumber column)
{
	HeapTuple	cached;

	while (HeapTupleIsValid(cached = SearchSysCacheCopy(cache, ObjectIdGetDatum(relation), Int16GetDatum(column), 0, 0)))
	{
		HeapTupleData row;
		HeapTuple	copy = NULL;
		Buffer		buffer;
		TM_FailureData failure;
		TM_Result	result;

		row.t_self = cached->t_self;
		result = heap_lock_tuple(catalog, &row, GetCurrentCommandId(true), LockTupleNoKeyExclusive, LockWaitBlock,
								 false, &buffer, &failure);
		if (result == TM_Ok)
			copy = heap_copytuple(&row);
		ReleaseBuffer(buffer);
		heap_freetuple(cached);

		switch (result)
		{
			case TM_Ok:
				CatalogTupleUpdate(catalog, &copy->t_self, copy);
				heap_freetuple(copy);
				return;
			case TM_SelfModified:
				/* Written by this command already, which keeps others from it */
				return;
			case TM_Updated:
			case TM_Deleted:
				CHECK_FOR_INTERRUPTS();
				AcceptInvalidationMessages();
				break;
			default:
				elog(ERROR, "could not lock a row of %s: result %d", RelationGetRelationName(catalog), result);
		}
	}
}

/*
 * snowflake_keep_privileges(relation): for a table or a sequence of the
 * caller's.  Its lock is one with which ALTER SEQUENCE and vacuums conflict, but
 * not who reads or writes, or calls nextval().
 */
Datum
snowflake_keep_privileges(PG_FUNCTION_ARGS)
{
	Oid			relation = PG_GETARG_OID(0);
	Relation	locked;
	AttrNumber	columns;
	Relation	catalog;

	/* Check this before we wait, as LOCK TABLE does. */
	if (!pg_class_ownercheck(relation, GetUserId()))
		aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_TABLE, get_rel_name(relation));

	locked = relation_open(relation, ShareUpdateExclusiveLock);
	columns = RelationGetNumberOfAttributes(locked);
	relation_close(locked, NoLock);

	catalog = table_open(RelationRelationId, RowExclusiveLock);
	rewrite_row(catalog, RELOID, relation, 0);
	table_close(catalog, RowExclusiveLock);

	catalog = table_open(AttributeRelationId, RowExclusiveLock);
	for (AttrNumber column = 1; column <= columns; column++)
		rewrite_row(catalog, ATTNUM, relation, column);
	table_close(catalog, RowExclusiveLock);

	/* What follows may change the rows again. */
	CommandCounterIncrement();
	PG_RETURN_VOID();
}
