/*-------------------------------------------------------------------------
 *
 * largest_ids.c
 *	  Read the largest values of a column without running anybody's code, for
 *	  extension snowflake_admin.
 *
 * snowflake_check() looks into everybody's tables, and superusers call it.  A
 * query would not do for that: while it is planned, index expressions and
 * partition keys that the table's owner wrote are evaluated with the caller's
 * rights, and so are casts and operators of the column's type.
 *
 * So this reads a btree index of integers directly.  It opens an index, but
 * never asks what its expressions are, compares with PostgreSQL's own
 * functions, and reads a column only if its values have the form of an integer
 * type.  Types and operator classes that claim this falsely are for superusers
 * to make.
 *
 * This file knows nothing of sequences and layouts.  To it, an ID is a number.
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/skey.h"
#include "access/stratnum.h"
#include "access/transam.h"
#include "access/xlog.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_opfamily.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "parser/parse_coerce.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/rls.h"
#include "utils/snapmgr.h"

#include "compat.h"

PG_FUNCTION_INFO_V1(snowflake_largest_ids);

/* The most values that a call may ask for, which is a limit of memory */
#define MOST_LIMIT	1000000

/* The values that a call wants, and those that it has found */
typedef struct Largest
{
	const char *column;
	int64		low;
	int64		high;
	int			most;
	int64	   *ids;			/* largest first, except during a scan */
	int			count;
	int			size;			/* of "ids" */
} Largest;

/* An integer type, and the functions that compare it with bigint */
typedef struct IntegerType
{
	Oid			type;
	RegProcedure at_least;
	RegProcedure at_most;
} IntegerType;

/*
 * The integer type that the values of a type have the form of, or NULL.
 *
 * The type snowflake and others like it have a cast to bigint that does
 * nothing.  Only superusers can make such casts.
 */
static const IntegerType *
integer_type_of(Oid type)
{
	static const IntegerType types[] = {
		{INT8OID, F_INT8GE, F_INT8LE},
		{INT4OID, F_INT48GE, F_INT48LE},
		{INT2OID, F_INT28GE, F_INT28LE}
	};
	Oid			base = getBaseType(type);

	for (int i = 0; i < (int) lengthof(types); i++)
		if (base == types[i].type)
			return &types[i];
	return IsBinaryCoercible(base, INT8OID) ? &types[0] : NULL;
}

/* A value of a column of that type as a bigint */
static int64
integer_value(Datum value, const IntegerType *type)
{
	return type->type == INT8OID ? DatumGetInt64(value) :
		type->type == INT4OID ? DatumGetInt32(value) : DatumGetInt16(value);
}

/*
 * Does an index have all rows of its table that our snapshot sees, in the
 * order of a column of that type?
 */
static bool
is_usable(Relation index, AttrNumber column, const IntegerType *type)
{
	Form_pg_index form = index->rd_index;

	return index->rd_rel->relam == BTREE_AM_OID &&
		form->indisvalid && form->indisready && form->indislive &&
		form->indkey.values[0] == column &&
		index->rd_opfamily[0] == INTEGER_BTREE_FAM_OID &&
		index->rd_opcintype[0] == type->type &&
		heap_attisnull(index->rd_indextuple, Anum_pg_index_indpred, NULL) &&
		(!form->indcheckxmin ||
		 TransactionIdPrecedes(HeapTupleHeaderGetXmin(index->rd_indextuple->t_data),
							   TransactionXmin));
}

/* Open and lock such an index.  Returns NULL if there is none. */
static Relation
open_usable_index(Relation rel, AttrNumber column, const IntegerType *type)
{
	List	   *indexes = RelationGetIndexList(rel);
	ListCell   *cell;

	foreach(cell, indexes)
	{
		Relation	index = index_open(lfirst_oid(cell), AccessShareLock);

		if (is_usable(index, column, type))
			return index;
		index_close(index, AccessShareLock);
	}
	return NULL;
}

/* For qsort(): the larger one comes first. */
static int
compare_descending(const void *a, const void *b)
{
	int64		one = *(const int64 *) a;
	int64		other = *(const int64 *) b;

	return (one < other) - (one > other);
}

/* Add the largest values of a table to those that have been found. */
static void
read_index(Relation rel, Relation index, AttrNumber column, const IntegerType *type, Largest *found)
{
	ScanDirection direction = (index->rd_indoption[0] & INDOPTION_DESC) != 0 ?
		ForwardScanDirection : BackwardScanDirection;
	int			before = found->count;
	ScanKeyData keys[2];
	SysScanDesc scan;
	HeapTuple	tuple;

	/*
	 * These functions are meant for catalogs, but only call those of the index,
	 * whatever the table, with the snapshot that they are given.  Unlike
	 * index_beginscan(), they have the same arguments in all versions.  They
	 * refuse an index that is lossy, which a btree is not.
	 */
	ScanKeyEntryInitialize(&keys[0], 0, column, BTGreaterEqualStrategyNumber,
						   INT8OID, InvalidOid, type->at_least,
						   Int64GetDatum(found->low));
	ScanKeyEntryInitialize(&keys[1], 0, column, BTLessEqualStrategyNumber,
						   INT8OID, InvalidOid, type->at_most,
						   Int64GetDatum(found->high));
	scan = systable_beginscan_ordered(rel, index, GetActiveSnapshot(), 2, keys);
	while (found->count - before < found->most &&
		   (tuple = systable_getnext_ordered(scan, direction)) != NULL)
	{
		bool		is_null;
		Datum		value = heap_getattr(tuple, column, RelationGetDescr(rel), &is_null);
		int64		id = is_null ? 0 : integer_value(value, type);

		CHECK_FOR_INTERRUPTS();
		/* The conditions are never true for NULL, but see for ourselves. */
		if (is_null)
			continue;
		/* What comes now is no larger than any of those that are kept. */
		if (before == found->most && id <= found->ids[before - 1])
			break;
		if (found->count == found->size)
		{
			found->size *= 2;
			found->ids = repalloc(found->ids, found->size * sizeof(int64));
		}
		found->ids[found->count++] = id;
	}
	systable_endscan_ordered(scan);

	qsort(found->ids, found->count, sizeof(int64), compare_descending);
	found->count = Min(found->count, found->most);
}

/*
 * Read a locked table, which may be a partition.  Returns NULL, or why it
 * cannot be read.
 */
static const char *
read_table(Relation rel, Largest *found)
{
	AttrNumber	column = get_attnum(RelationGetRelid(rel), found->column);
	Oid			type_of_column;
	const IntegerType *type;
	Relation	index;

	if (rel->rd_rel->relkind != RELKIND_RELATION)
		return "foreign table";
	if (RELATION_IS_OTHER_TEMP(rel))
		return "temporary table of another session";
	if (rel->rd_rel->relpersistence != RELPERSISTENCE_PERMANENT && RecoveryInProgress())
		return "unlogged table on a standby";

	type_of_column = get_atttype(RelationGetRelid(rel), column);
	type = integer_type_of(type_of_column);
	if (type == NULL)
		return psprintf("type %s", format_type_be(type_of_column));

	index = open_usable_index(rel, column, type);
	if (index == NULL)
		return "no index";
	read_index(rel, index, column, type, found);
	index_close(index, AccessShareLock);
	return NULL;
}

/*
 * Read the partitions of a locked table, at all levels.  They have the column
 * by the same name, but not always by the same number.  Returns NULL, or why
 * one of them cannot be read.
 */
static const char *
read_partitions(Oid parent, Largest *found)
{
	List	   *tables = find_all_inheritors(parent, AccessShareLock, NULL);
	const char *obstacle = NULL;
	ListCell   *cell;

	foreach(cell, tables)
	{
		Oid			relid = lfirst_oid(cell);
		Relation	rel;

		/* The first one is the parent, which our caller has locked. */
		if (relid == parent)
			continue;
		rel = relation_open(relid, NoLock);
		if (obstacle == NULL && rel->rd_rel->relkind != RELKIND_PARTITIONED_TABLE)
		{
			obstacle = read_table(rel, found);
			if (obstacle != NULL)
				obstacle = psprintf("%s (partition %s)", obstacle,
									quote_qualified_identifier(get_namespace_name(RelationGetNamespace(rel)),
															   RelationGetRelationName(rel)));
		}
		relation_close(rel, AccessShareLock);
	}
	return obstacle;
}

/* NULL, or why the current role cannot read all of the column */
static const char *
obstacle_to_role(Oid relid, const char *name)
{
	char		relkind = get_rel_relkind(relid);
	AttrNumber	column = get_attnum(relid, name);

	if (relkind == '\0')
		return "no such table";
	if (relkind != RELKIND_RELATION && relkind != RELKIND_PARTITIONED_TABLE)
		return "not a table";
	if (column <= 0)
		return "no such column";
	if (pg_class_aclcheck(relid, GetUserId(), ACL_SELECT) != ACLCHECK_OK &&
		pg_attribute_aclcheck(relid, column, GetUserId(), ACL_SELECT) != ACLCHECK_OK)
		return "no privilege";
	if (check_enable_rls(relid, InvalidOid, true) == RLS_ENABLED)
		return "policies hide rows";
	return NULL;
}

/*
 * Read a table.  Returns NULL, or why it cannot be read.  Locks are released at
 * once, so that a look at all tables of a database does not fill PostgreSQL's
 * table of locks and keeps nobody waiting for long.
 */
static const char *
read_largest(Oid relid, Largest *found)
{
	const char *obstacle = obstacle_to_role(relid, found->column);
	Relation	rel;

	/* A role without privileges must not make others wait for its lock. */
	if (obstacle != NULL)
		return obstacle;
	rel = try_relation_open(relid, AccessShareLock);
	if (rel == NULL)
		return "no such table";

	/* Much may have changed while we waited for the lock. */
	obstacle = obstacle_to_role(relid, found->column);
	if (obstacle == NULL)
		obstacle = rel->rd_rel->relkind == RELKIND_PARTITIONED_TABLE ?
			read_partitions(relid, found) : read_table(rel, found);
	relation_close(rel, AccessShareLock);
	return obstacle;
}

/*
 * snowflake_largest_ids(tab, col, low, high, most): the largest values of a
 * column from "low" to "high", at most "most" of them, largest first.  Or, in
 * place of them, what keeps us from reading them.
 */
Datum
snowflake_largest_ids(PG_FUNCTION_ARGS)
{
	Largest		found = {
		.column = NameStr(*PG_GETARG_NAME(1)),
		.low = PG_GETARG_INT64(2),
		.high = PG_GETARG_INT64(3),
		.most = PG_GETARG_INT32(4),
		.size = 16
	};
	ArrayBuildState *ids = NULL;
	const char *obstacle;
	TupleDesc	desc;
	Datum		values[2] = {0};
	bool		nulls[2];

	if (found.most < 1 || found.most > MOST_LIMIT)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("most %d is out of range", found.most),
				 errhint("Request 1 to %d values.", MOST_LIMIT)));
	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");

	found.ids = palloc(found.size * sizeof(int64));
	obstacle = read_largest(PG_GETARG_OID(0), &found);

	for (int i = 0; i < found.count && obstacle == NULL; i++)
		ids = accumArrayResult(ids, Int64GetDatum(found.ids[i]), false, INT8OID,
							   CurrentMemoryContext);
	nulls[0] = ids == NULL;
	if (ids != NULL)
		values[0] = makeArrayResult(ids, CurrentMemoryContext);
	nulls[1] = obstacle == NULL;
	if (obstacle != NULL)
		values[1] = CStringGetTextDatum(obstacle);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls)));
}
