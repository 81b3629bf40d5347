/*-------------------------------------------------------------------------
 *
 * planner.c
 *	  What the planner is told of next_id() and next_ids().
 *
 * COPY writes the rows of a page at once ("multi-insert"), unless a column's
 * default is volatile: such a default might look at the table and miss the
 * rows that COPY still holds back.  COPY knows that nextval() does not look,
 * but has no way to be told of other functions.  So next_id() gets a
 * replacement that COPY takes for nextval():
 *
 *		COALESCE(snowflake_next_id_in_copy(...), nextval(...))
 *
 * The first function is next_id() by another name, declared STABLE.  It never
 * returns NULL, so nextval() is never called; but its presence keeps the whole
 * expression volatile for everything that asks whether it may be evaluated
 * once for all rows, such as ALTER TABLE ... ADD COLUMN.
 *
 * The planner offers the replacement for expressions without a query only,
 * which is how defaults come to COPY.  Queries keep next_id() as it is.
 *
 * This file does not know how an ID is made.
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/supportnodes.h"
#include "parser/parse_func.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"

#include "compat.h"

PG_FUNCTION_INFO_V1(snowflake_support);

/*
 * The expression that stands for a call of next_id() in COPY, or NULL if the
 * call is to be left alone.
 */
static Node *
replacement_for_copy(const FuncExpr *call)
{
	Oid			schema = get_func_namespace(call->funcid);
	Oid			types[3];
	int			nargs = 0;
	Oid			function;
	Oid			sequence;
	NextValueExpr *next_value;
	CoalesceExpr *replacement;
	ListCell   *cell;

	foreach(cell, call->args)
	{
		if (nargs == lengthof(types))
			return NULL;
		types[nargs++] = exprType(lfirst(cell));
	}

	function = LookupFuncName(list_make2(makeString(get_namespace_name(schema)),
										 makeString("snowflake_next_id_in_copy")),
							  nargs, types, true);
	/* COPY would fail if the role may not call the replacement. */
	if (!OidIsValid(function) || !MayExecute(function, GetUserId()))
		return NULL;

	/* nextval() is never called, but its sequence has to be one. */
	if (nargs == 0)
		sequence = get_relname_relid("next_id_seq", schema);
	else
	{
		const Const *argument = list_nth(call->args, 1);

		if (!IsA(argument, Const) || argument->constisnull)
			return NULL;
		sequence = DatumGetObjectId(argument->constvalue);
	}
	if (!OidIsValid(sequence))
		return NULL;

	next_value = makeNode(NextValueExpr);
	next_value->seqid = sequence;
	next_value->typeId = INT8OID;

	replacement = makeNode(CoalesceExpr);
	replacement->coalescetype = INT8OID;
	replacement->coalescecollid = InvalidOid;
	replacement->args = list_make2(makeFuncExpr(function, INT8OID, call->args,
												InvalidOid, InvalidOid,
												COERCE_EXPLICIT_CALL),
								   next_value);
	replacement->location = -1;
	return (Node *) replacement;
}

/*
 * How many rows a call of next_ids() returns; false if that is not known yet.
 */
static bool
estimate_rows(const Node *node, double *rows)
{
	const Const *count;

	if (!IsA(node, FuncExpr))
		return false;
	count = list_nth(((const FuncExpr *) node)->args, 1);
	if (!IsA(count, Const) || count->constisnull)
		return false;
	*rows = Max(DatumGetInt32(count->constvalue), 1);
	return true;
}

/*
 * Planner support function of next_id() and next_ids()
 */
Datum
snowflake_support(PG_FUNCTION_ARGS)
{
	Node	   *request = (Node *) PG_GETARG_POINTER(0);
	Node	   *answer = NULL;

	if (IsA(request, SupportRequestSimplify))
	{
		SupportRequestSimplify *simplify = (SupportRequestSimplify *) request;

		if (simplify->root == NULL)
			answer = replacement_for_copy(simplify->fcall);
	}
	else if (IsA(request, SupportRequestRows))
	{
		SupportRequestRows *rows = (SupportRequestRows *) request;

		if (estimate_rows(rows->node, &rows->rows))
			answer = request;
	}

	PG_RETURN_POINTER(answer);
}
