/*-------------------------------------------------------------------------
 *
 * planner.c
 *	  What the planner is told of next_id() and next_ids().
 *
 * COPY writes the rows of a page at once ("multi-insert"), unless a column's
 * default is volatile: such a default might look at the table and miss the
 * rows that COPY still holds back.  COPY knows that nextval() does not look,
 * but has no way to be told of other functions.  So where COPY asks the planner
 * for its defaults, next_id() gets a replacement:
 *
 *		snowflake_next_id_in_copy(NULL, next_id, ...)
 *
 * This is next_id() by another name, declared STABLE.  COPY evaluates it for
 * each row, as it does all defaults.  Its first argument, which it ignores, is
 * of type internal, so that nobody can call it in SQL.
 *
 * The planner asks for a replacement whenever it simplifies a call of
 * next_id().  It gets one only for the defaults that COPY FROM itself has
 * planned (plans_copy_default()).  In all other places a STABLE function might
 * be evaluated once for all rows, or be sent as text to another server, as
 * Citus does with expressions of an INSERT, which may be part of COPY TO or of
 * a trigger that COPY FROM fires.
 *
 * This file does not know how an ID is generated.
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/parsenodes.h"
#include "nodes/supportnodes.h"
#include "tcop/pquery.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

#include "compat.h"

PG_FUNCTION_INFO_V1(snowflake_support);

/* Its name in SQL and in C */
#define COPY_FUNCTION	"snowflake_next_id_in_copy"

/* Do two rows of pg_proc have the same text in a column? */
static bool
have_same_text(HeapTuple one, HeapTuple other, AttrNumber column)
{
	bool		one_is_null;
	bool		other_is_null;
	Datum		one_text = SysCacheGetAttr(PROCOID, one, column, &one_is_null);
	Datum		other_text = SysCacheGetAttr(PROCOID, other, column, &other_is_null);

	return !one_is_null && !other_is_null &&
		strcmp(TextDatumGetCString(one_text), TextDatumGetCString(other_text)) == 0;
}

/*
 * Is this row of pg_proc snowflake_next_id_in_copy(), of the same library as
 * "replaced", a next_id()?
 *
 * Neither a name nor the membership in an extension tells.  Others may create
 * functions of this name, and whoever has created the extension, which is
 * trusted, may add functions of his own to it.  But only superusers can create
 * functions in C.
 */
static bool
is_copy_function(HeapTuple candidate, HeapTuple replaced)
{
	static const Oid types[] = {INTERNALOID, OIDOID, INT8OID, REGCLASSOID};
	Form_pg_proc form = (Form_pg_proc) GETSTRUCT(candidate);
	Form_pg_proc next_id = (Form_pg_proc) GETSTRUCT(replaced);
	bool		is_null;

	/* The layout's type, which has no fixed OID, is that of next_id(). */
	return form->prolang == ClanguageId && next_id->prolang == ClanguageId &&
		have_same_text(candidate, replaced, Anum_pg_proc_probin) &&
		strcmp(TextDatumGetCString(SysCacheGetAttr(PROCOID, candidate,
												   Anum_pg_proc_prosrc, &is_null)),
			   COPY_FUNCTION) == 0 &&
		form->prorettype == INT8OID && !form->proretset &&
		form->pronargs == (int) lengthof(types) + 1 &&
		memcmp(form->proargtypes.values, types, sizeof(types)) == 0 &&
		(next_id->pronargs < 3 ||
		 form->proargtypes.values[lengthof(types)] == next_id->proargtypes.values[2]);
}

/*
 * Find the snowflake_next_id_in_copy() that can replace a next_id().  Returns
 * InvalidOid if there is none.
 */
static Oid
find_copy_function(Oid next_id)
{
	HeapTuple	replaced = SearchSysCache1(PROCOID, ObjectIdGetDatum(next_id));
	CatCList   *list;
	Oid			found = InvalidOid;

	if (!HeapTupleIsValid(replaced))
		return InvalidOid;
	list = SearchSysCacheList1(PROCNAMEARGSNSP, CStringGetDatum(COPY_FUNCTION));
	for (int i = 0; i < list->n_members; i++)
	{
		HeapTuple	candidate = &list->members[i]->tuple;

		if (is_copy_function(candidate, replaced))
			found = ((Form_pg_proc) GETSTRUCT(candidate))->oid;
	}
	ReleaseSysCacheList(list);
	ReleaseSysCache(replaced);
	return found;
}

/*
 * Does a call of this function do nothing but run its C code?  SECURITY
 * DEFINER, a SET clause and the hooks of security modules act before and after
 * that code, and a replacement of the function would leave them out.
 * PostgreSQL's inline_function() looks for the same three.
 */
static bool
runs_unchanged(Oid function)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	bool		unchanged;

	if (!HeapTupleIsValid(tuple))
		return false;
	unchanged = !((Form_pg_proc) GETSTRUCT(tuple))->prosecdef &&
		heap_attisnull(tuple, Anum_pg_proc_proconfig, NULL) &&
		!FmgrHookIsNeeded(function);
	ReleaseSysCache(tuple);
	return unchanged;
}

/*
 * snowflake_next_id_in_copy(NULL, next_id, ...), with the arguments of the call
 * in place of the dots, and NULL for those that it has not.  Or NULL, if the
 * call must be left as it is.
 *
 * When it runs, it checks that the role may call next_id().
 */
static Node *
replacement_for_copy(const FuncExpr *call)
{
	Oid			copy_function = find_copy_function(call->funcid);
	Oid		   *types;
	int			count;
	List	   *args;

	if (!runs_unchanged(call->funcid) || !runs_unchanged(copy_function) ||
		pg_proc_aclcheck(copy_function, GetUserId(), ACL_EXECUTE) != ACLCHECK_OK)
		return NULL;

	args = list_make2(makeNullConst(INTERNALOID, -1, InvalidOid),
					  makeConst(OIDOID, -1, InvalidOid, sizeof(Oid),
								ObjectIdGetDatum(call->funcid), false, true));
	args = list_concat(args, call->args);
	(void) get_func_signature(copy_function, &types, &count);
	while (list_length(args) < count)
		args = lappend(args, makeNullConst(types[list_length(args)], -1, InvalidOid));

	return (Node *) makeFuncExpr(copy_function, INT8OID, args, InvalidOid, InvalidOid,
								 COERCE_EXPLICIT_CALL);
}

/*
 * Is the planner called by COPY FROM, the client's statement, for a column's
 * default?
 *
 * Nobody tells.  But COPY FROM has the defaults planned in a memory context
 * named "COPY", which it makes in that of its portal.  A query of COPY TO is
 * planned in such a context, too.  Whatever a trigger or a function runs has
 * its own contexts.
 */
static bool
plans_copy_default(void)
{
	Node	   *statement;

	if (ActivePortal == NULL || ActivePortal->commandTag != CMDTAG_COPY ||
		strcmp(CurrentMemoryContext->name, "COPY") != 0 ||
		MemoryContextGetParent(CurrentMemoryContext) != ActivePortal->portalContext)
		return false;

	statement = linitial_node(PlannedStmt, ActivePortal->stmts)->utilityStmt;
	return statement != NULL && IsA(statement, CopyStmt) && ((CopyStmt *) statement)->is_from;
}

/* Planner support function of next_id() and next_ids() */
Datum
snowflake_support(PG_FUNCTION_ARGS)
{
	Node	   *request = (Node *) PG_GETARG_POINTER(0);
	Node	   *answer = NULL;

	if (IsA(request, SupportRequestSimplify))
	{
		SupportRequestSimplify *simplify = (SupportRequestSimplify *) request;

		/* No root: not part of a query.  Only next_ids() returns a set. */
		if (simplify->root == NULL && !simplify->fcall->funcretset && plans_copy_default())
			answer = replacement_for_copy(simplify->fcall);
	}
	else if (IsA(request, SupportRequestRows))
	{
		SupportRequestRows *rows = (SupportRequestRows *) request;
		Node	   *count = IsA(rows->node, FuncExpr) ?
			list_nth(((FuncExpr *) rows->node)->args, 1) : NULL;

		/* next_ids() returns as many rows as its second argument says. */
		if (count != NULL && IsA(count, Const) && !((Const *) count)->constisnull)
		{
			rows->rows = Max(DatumGetInt64(((Const *) count)->constvalue), 1);
			answer = request;
		}
	}

	PG_RETURN_POINTER(answer);
}
