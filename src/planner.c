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
 * returns NULL, so nextval() is never called.  But because of nextval() the
 * whole expression counts as volatile wherever PostgreSQL asks whether it may
 * evaluate an expression once for all rows, for example in ALTER TABLE ... ADD
 * COLUMN.
 *
 * The planner asks for a replacement whenever it simplifies a call of
 * next_id().  It gets one only for an expression that is not part of a query,
 * because that is how COPY has its defaults planned.  Queries keep next_id()
 * as it is.
 *
 * This file does not know how an ID is made.
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/dependency.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "nodes/makefuncs.h"
#include "nodes/supportnodes.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "compat.h"

#include "planner.h"

PG_FUNCTION_INFO_V1(snowflake_support);

/*
 * Find the function called "name" that is in the same schema and extension as
 * "function" and has the same argument types.  Returns InvalidOid if there is
 * none.  This finds snowflake_next_id_in_copy() for next_id(), and next_id()
 * for snowflake_next_id_in_copy().
 *
 * The extension matters if the functions have been moved to a schema where
 * others may create functions.  One of theirs may have the name there, but it
 * is not a member of the extension.
 *
 * PostgreSQL's LookupFuncName() cannot be used, because it checks for USAGE on
 * the schema, which a role that uses a column's default does not need.
 */
Oid
planner_find_counterpart(Oid function, const char *name)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	Form_pg_proc form;
	Oid			result;
	Oid			extension;

	/* The function may have been dropped, even while it is in use. */
	if (!HeapTupleIsValid(tuple))
		return InvalidOid;
	form = (Form_pg_proc) GETSTRUCT(tuple);
	result = GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid,
							 CStringGetDatum(name),
							 PointerGetDatum(&form->proargtypes),
							 ObjectIdGetDatum(form->pronamespace));
	ReleaseSysCache(tuple);
	if (!OidIsValid(result))
		return InvalidOid;

	extension = getExtensionOfObject(ProcedureRelationId, function);
	if (!OidIsValid(extension) ||
		getExtensionOfObject(ProcedureRelationId, result) != extension)
		return InvalidOid;
	return result;
}

/*
 * Does a call of this function do no more than run its C code?  SECURITY
 * DEFINER, a SET clause and the hooks of security modules act before and after
 * that code, and a replacement of the function would leave them out.
 * PostgreSQL's inline_function() looks for the same three.
 */
static bool
runs_unchanged(Oid function)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	bool		result;

	if (!HeapTupleIsValid(tuple))
		return false;
	result = !((Form_pg_proc) GETSTRUCT(tuple))->prosecdef &&
		heap_attisnull(tuple, Anum_pg_proc_proconfig, NULL) &&
		!FmgrHookIsNeeded(function);
	ReleaseSysCache(tuple);
	return result;
}

/*
 * The expression that replaces a call of next_id() in COPY, or NULL if the
 * call must be left as it is.  For next_ids(), this is NULL, because no
 * snowflake_next_id_in_copy() has the same arguments: the second one of
 * next_ids() is a number.
 *
 * When the replacement runs, it looks for next_id() to check that its caller
 * may call that function.  So it is used only if it will find next_id().  All
 * roles must be allowed to call snowflake_next_id_in_copy(), because an
 * expression may be planned for one role and be evaluated for another, as the
 * CHECK of a domain is.
 */
static Node *
replacement_for_copy(const FuncExpr *call)
{
	Oid			function = planner_find_counterpart(call->funcid,
													"snowflake_next_id_in_copy");
	Oid			sequence;
	NextValueExpr *next_value;
	CoalesceExpr *replacement;

	if (!OidIsValid(function) ||
		planner_find_counterpart(function, "next_id") != call->funcid ||
		!runs_unchanged(call->funcid) || !runs_unchanged(function) ||
		!MayExecute(function, ACL_ID_PUBLIC))
		return NULL;

	/*
	 * NextValueExpr must refer to a sequence, although COALESCE never
	 * evaluates it.  The sequence is the second argument of next_id(), or the
	 * one that came with next_id().  If that is missing, this must not raise
	 * an error as sequence_default() does, because next_id() will raise it.
	 */
	if (list_length(call->args) < 2)
		sequence = get_relname_relid("next_id_seq",
									 get_func_namespace(call->funcid));
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
 * Set *rows to the number of rows that a call of next_ids() returns, which is
 * its second argument.  Returns false if the argument is not a constant.
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
	*rows = Max(DatumGetInt64(count->constvalue), 1);
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

		/* Without a PlannerInfo, the expression is not part of a query. */
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
