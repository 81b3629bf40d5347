/*-------------------------------------------------------------------------
 *
 * layout_type.c
 *	  The type snowflake_layout, and the layouts that this session has used.
 *
 * A value of the type holds no more than a layout's text.  This file finds the
 * layout that belongs to the text, and keeps it for the session.  It does not
 * know how IDs are made or how sequences are used.
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "funcapi.h"
#include "libpq/pqformat.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "nodes/primnodes.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "compat.h"

#include "interval.h"
#include "layout_type.h"

PG_FUNCTION_INFO_V1(snowflake_layouts);
PG_FUNCTION_INFO_V1(snowflake_layout_in);
PG_FUNCTION_INFO_V1(snowflake_layout_out);
PG_FUNCTION_INFO_V1(snowflake_layout_recv);
PG_FUNCTION_INFO_V1(snowflake_layout_send);

/*
 * A value of type snowflake_layout: a version and the canonical text.  A
 * layout's text is shorter than its facts, and PostgreSQL reads each byte of a
 * constant in a column's default as a number whenever it plans an INSERT.
 */
typedef struct StoredLayout
{
	char		vl_len_[4];
	uint8		version;
	char		text[FLEXIBLE_ARRAY_MEMBER];	/* with the final zero */
} StoredLayout;

#define STORED_LAYOUT_VERSION	1

/*
 * The layouts that this session has used first, and the default one of them.
 * Their number is limited, as anyone can define any number of layouts.  Few
 * sessions use more than two.
 */
#define LAYOUTS_REMEMBERED	32

static HTAB *layouts;
const Layout *layout_type_default;

pg_noreturn static void
report_damaged_layout(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("damaged value of type %s", "snowflake_layout")));
}

/*
 * Find a layout by its text, or NULL if there is no such layout.  The result
 * lives at least as long as the given memory context.  If that is
 * TopMemoryContext, the layout is always added to those of the session.
 */
static const Layout *
find_layout(const char *text, MemoryContext context)
{
	static uint64 specs = 0;
	Layout	   *layout = hash_search(layouts, text, HASH_FIND, NULL);
	LayoutDefinition definition;
	LayoutError error;

	if (layout == NULL && layout_parse(text, &definition, &error))
	{
		if (context == TopMemoryContext ||
			hash_get_num_entries(layouts) < LAYOUTS_REMEMBERED)
			layout = hash_search(layouts, text, HASH_ENTER, NULL);
		else
			layout = MemoryContextAlloc(context, sizeof(Layout));

		/* This sets the hash key to the same text again. */
		layout_init(layout, &definition);
		layout->spec.number = ++specs;
	}
	return layout;
}

/*
 * The text of a stored value, which a later release may have written.
 */
static const char *
stored_text(Datum value)
{
	const StoredLayout *stored = (const StoredLayout *) DatumGetPointer(value);
	Size		length = VARSIZE(stored);

	if (length > offsetof(StoredLayout, text) &&
		stored->version != STORED_LAYOUT_VERSION)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("unsupported version %d of type %s",
						stored->version, "snowflake_layout"),
				 errhint("Install a later release of the extension's library.")));

	if (length <= offsetof(StoredLayout, text) ||
		length > offsetof(StoredLayout, text) + LAYOUT_TEXT_SIZE ||
		((const char *) stored)[length - 1] != '\0')
		report_damaged_layout();
	return stored->text;
}

/*
 * The layout of a stored value.  It lives as long as find_layout() says.
 */
const Layout *
layout_type_get(Datum value, MemoryContext context)
{
	const char *text = stored_text(value);
	const Layout *layout;

	if (strcmp(text, layout_type_default->text) == 0)
		return layout_type_default;

	layout = find_layout(text, context);
	if (layout == NULL)
		report_damaged_layout();
	return layout;
}

/*
 * The text of a stored value for output, which has no use for more.
 */
static char *
output_text(Datum value)
{
	const char *text = stored_text(value);
	LayoutDefinition definition;
	LayoutError error;

	if (!layout_parse(text, &definition, &error))
		report_damaged_layout();
	return pstrdup(text);
}

/*
 * Called once, when the library is loaded.
 */
void
layout_type_init(void)
{
	HASHCTL		ctl;

	ctl.keysize = LAYOUT_TEXT_SIZE;
	ctl.entrysize = sizeof(Layout);
	layouts = hash_create("snowflake layouts", 16, &ctl,
						  HASH_ELEM | HASH_STRINGS);
	layout_type_default = find_layout("instagram", TopMemoryContext);
}

/*
 * Look up a call's layout, and keep it for the calls that follow if it is a
 * constant of the query.
 */
const Layout *
layout_type_look_up(FunctionCallInfo fcinfo, int argument)
{
	FmgrInfo   *flinfo = fcinfo->flinfo;
	const FuncExpr *call = (const FuncExpr *) flinfo->fn_expr;
	Datum		value = PG_GETARG_DATUM(argument);
	const Layout *layout;

	if (call == NULL || !IsA(call, FuncExpr) ||
		list_length(call->args) <= argument ||
		!IsA(list_nth(call->args, argument), Const))
		return layout_type_get(value, CurrentMemoryContext);

	layout = layout_type_get(value, flinfo->fn_mcxt);
	flinfo->fn_extra = unconstify(Layout *, layout);
	return layout;
}

/*
 * The built-in layout that sequences of this MAXVALUE serve.  If there is none,
 * return the default one, so that the caller gets the error of a sequence that
 * does not serve it.
 */
const Layout *
layout_type_served(int64 max_value)
{
	static const Layout *last = NULL;
	const char *name;

	if (max_value == layout_type_default->spec.max_value)
		return layout_type_default;
	if (last != NULL && max_value == last->spec.max_value)
		return last;

	name = layout_of_max_value(max_value);
	if (name == NULL)
		return layout_type_default;
	last = find_layout(name, TopMemoryContext);
	return last;
}

void
layout_type_report_missing(const Layout *layout, const char *field)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("layout \"%s\" has no %s", layout->text, field)));
}

/*
 * The layout must tell an ID's time.
 */
void
layout_type_require_time(const Layout *layout)
{
	if (likely(layout->has_time))
		return;
	if (layout->has_clock)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("layout \"%s\" does not tell an ID's time",
						layout->text),
				 errdetail("Its timestamp wraps around."),
				 errhint("snowflake_fields() shows the timestamp as it is.")));
	layout_type_report_missing(layout, "timestamp");
}

/*
 * The built-in layouts
 */
Datum
snowflake_layouts(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;

	InitMaterializedSRF(fcinfo, 0);

	for (int i = 0; i < layout_count_builtins(); i++)
	{
		LayoutDefinition definition;
		Layout		layout;
		Datum		values[8] = {0};
		bool		nulls[8] = {false};

		values[1] = CStringGetTextDatum(layout_get_builtin(i, &definition));
		layout_init(&layout, &definition);

		values[0] = CStringGetTextDatum(layout.text);
		values[2] = TimestampTzGetDatum(layout.spec.epoch);
		values[3] = interval_datum(layout.spec.tick_usecs);
		values[4] = Int64GetDatum(layout.shards);
		values[5] = Int64GetDatum(layout.spec.slots);
		nulls[2] = nulls[3] = nulls[5] = !layout.has_clock;
		nulls[6] = !layout.has_time;
		if (layout.has_time)
			values[6] = TimestampTzGetDatum(layout_end_time(&layout));
		values[7] = Int64GetDatum(layout.spec.max_value);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}

	return (Datum) 0;
}

/*
 * Type snowflake_layout
 */

Datum
snowflake_layout_in(PG_FUNCTION_ARGS)
{
	char	   *text = PG_GETARG_CSTRING(0);
	LayoutDefinition definition;
	LayoutError error;
	StoredLayout *stored;

	if (!layout_parse(text, &definition, &error))
	{
		int			position = pg_mbstrlen_with_len(text, error.start) + 1;
		int			length = pg_mbcliplen(text + error.start, error.length, 64);

		ereturn(fcinfo->context, (Datum) 0,
				(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
				 errmsg("invalid input syntax for type %s: \"%s\"",
						"snowflake_layout", text),
				 errdetail("At character %d, \"%.*s\": %s.",
						   position, length, text + error.start, error.reason),
				 error.unknown_name ?
				 errhint("The function snowflake_layouts() lists the layouts that have a name. A definition reads like \"timestamp:41 shard:13 sequence:10 epoch:1314220021721\".") : 0));
	}

	stored = palloc0(offsetof(StoredLayout, text) + LAYOUT_TEXT_SIZE);
	stored->version = STORED_LAYOUT_VERSION;
	layout_print(&definition, stored->text);
	SET_VARSIZE(stored, offsetof(StoredLayout, text) + strlen(stored->text) + 1);

	PG_RETURN_POINTER(stored);
}

Datum
snowflake_layout_out(PG_FUNCTION_ARGS)
{
	PG_RETURN_CSTRING(output_text(PG_GETARG_DATUM(0)));
}

/*
 * The external form is the version and the text.
 */
Datum
snowflake_layout_recv(PG_FUNCTION_ARGS)
{
	StringInfo	buffer = (StringInfo) PG_GETARG_POINTER(0);
	int			version = pq_getmsgbyte(buffer);
	char	   *text;
	int			length;

	if (version != STORED_LAYOUT_VERSION)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 errmsg("unsupported version %d of type %s",
						version, "snowflake_layout")));

	text = pq_getmsgtext(buffer, buffer->len - buffer->cursor, &length);

	return DirectFunctionCall1(snowflake_layout_in, CStringGetDatum(text));
}

Datum
snowflake_layout_send(PG_FUNCTION_ARGS)
{
	const char *text = output_text(PG_GETARG_DATUM(0));
	StringInfoData buffer;

	pq_begintypsend(&buffer);
	pq_sendbyte(&buffer, STORED_LAYOUT_VERSION);
	pq_sendtext(&buffer, text, strlen(text));
	PG_RETURN_BYTEA_P(pq_endtypsend(&buffer));
}
