/*-------------------------------------------------------------------------
 *
 * partition_limit.c
 *	  Attach a partition whose CHECK (id < snowflake_admin.partition_limit())
 *	  proves its bound, for extension snowflake_admin.
 *
 * PostgreSQL computes what is IMMUTABLE wherever it plans a query of the table,
 * and looks at no partition of which it can then prove that no row fits.  So a
 * limit that anybody could lower would hide rows from everybody's code: a
 * foreign key would leave rows that refer to nothing.  The limit is the largest
 * bigint, but for the one ALTER TABLE ... ATTACH PARTITION that this file runs.
 *
 * Code of the table's owner runs inside that command, too, when PostgreSQL
 * computes CHECKs or builds indexes, and may query other owners' tables.  Such
 * a query is not to see the lower limit, nor is a plan that outlives the
 * command, as those of foreign keys do.  What tells them apart is the stack of
 * error contexts.  SPI puts a context on it for each statement.  In the command
 * itself, SPI's is the only one above those of our caller.  A query inside the
 * command has its own, and mostly that of its function, too.
 *
 * If another extension adds a context to commands, the limit is not lowered,
 * and ATTACH PARTITION reads all rows.
 *
 * The table's owner gains nothing by calling this with a bound of his choice: a
 * CHECK with an IMMUTABLE function of his own would deceive PostgreSQL as well.
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/builtins.h"

PG_FUNCTION_INFO_V1(snowflake_partition_limit);
PG_FUNCTION_INFO_V1(snowflake_attach_below);

/* In as_owner.c */
extern PGDLLEXPORT Datum snowflake_do_as_owner(PG_FUNCTION_ARGS);

/* The command that runs, or NULL.  It is the innermost one, as it may run code that calls this. */
typedef struct Attach
{
	int64		bound;
	ErrorContextCallback *callers;	/* the contexts outside of the command */
} Attach;

static const Attach *attach = NULL;

/* snowflake_partition_limit(): what all IDs are below */
Datum
snowflake_partition_limit(PG_FUNCTION_ARGS)
{
	(void) fcinfo;
	if (attach != NULL && error_context_stack != NULL &&
		error_context_stack->previous == attach->callers)
		PG_RETURN_INT64(attach->bound);
	PG_RETURN_INT64(PG_INT64_MAX);
}

/*
 * snowflake_attach_below(parent, tab, bound): attach a table as the partition of
 * all IDs below a bound, as the owner of the partitioned table
 */
Datum
snowflake_attach_below(PG_FUNCTION_ARGS)
{
	Datum		parent = PG_GETARG_DATUM(0);
	const Attach this_one = {
		.bound = PG_GETARG_INT64(2),
		.callers = error_context_stack
	};
	const Attach *outer = attach;
	char	   *command = psprintf("ALTER TABLE %s ATTACH PARTITION %s FOR VALUES FROM (MINVALUE) TO (" INT64_FORMAT ")",
								   DatumGetCString(DirectFunctionCall1(regclassout, parent)),
								   DatumGetCString(DirectFunctionCall1(regclassout, PG_GETARG_DATUM(1))),
								   this_one.bound);

	attach = &this_one;
	PG_TRY();
	{
		DirectFunctionCall2(snowflake_do_as_owner, parent, CStringGetTextDatum(command));
	}
	PG_FINALLY();
	{
		attach = outer;
	}
	PG_END_TRY();
	PG_RETURN_VOID();
}
