/*-------------------------------------------------------------------------
 *
 * layout_type.c
 *	  The type snowflake_layout, and the layouts that this session has used.
 *
 * This file does not know how IDs are generated.  Of sequences it knows only that
 * the MAXVALUE of a sequence tells which layout the sequence serves.
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
#include "nodes/primnodes.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "compat.h"

#include "layout_type.h"

PG_FUNCTION_INFO_V1(snowflake_layouts);
PG_FUNCTION_INFO_V1(snowflake_layout_in);
PG_FUNCTION_INFO_V1(snowflake_layout_out);
PG_FUNCTION_INFO_V1(snowflake_layout_recv);
PG_FUNCTION_INFO_V1(snowflake_layout_send);

/*
 * A value of type snowflake_layout: a version, and the text that
 * layout_print() writes.
 *
 * The text is stored rather than a ParsedLayout, because it is usually
 * shorter.  Length matters where a layout is a constant in a column's default.
 * PostgreSQL stores the default as text, with a decimal number for each byte
 * of the constant, and reads all these numbers whenever it plans an INSERT.
 */
typedef struct StoredLayout
{
	char		vl_len_[4];		/* of a varlena */
	uint8		version;
	char		text[FLEXIBLE_ARRAY_MEMBER];	/* with the final zero */
} StoredLayout;

#define STORED_LAYOUT_VERSION	1

/*
 * The layouts that this session has used, by their text.  They live as long as
 * the session, so that others can keep pointers to them.
 */
static HTAB *layouts;

/* The default layout, which is that of next_id_seq */
const Layout *layout_type_default;

pg_noreturn static void
report_damaged_layout(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("damaged value of type %s", "snowflake_layout"),
			 errhint("If a later release of the extension's library wrote it, install that release.")));
}

/*
 * Find a layout by its text, which layout_print() has written.  Returns NULL
 * if the text is not a layout's.
 */
static const Layout *
find_layout(const char *text)
{
	Layout	   *layout = hash_search(layouts, text, HASH_FIND, NULL);
	ParsedLayout parsed;
	LayoutError error;
	char		printed[LAYOUT_TEXT_SIZE];

	if (layout == NULL && layout_parse(text, &parsed, &error))
	{
		/*
		 * Layout.text is the hash key, and layout_init() will set it to the
		 * printed text.  So that must be the text which is looked for.
		 */
		layout_print(&parsed, printed);
		if (strcmp(printed, text) != 0)
			return NULL;

		layout = hash_search(layouts, text, HASH_ENTER, NULL);
		layout_init(layout, &parsed);
	}
	return layout;
}

/*
 * The text of a stored value.  A later release may have written the value, so
 * its version is checked before all else.
 *
 * The value needs no detoasting, because the type has STORAGE plain, the
 * default of CREATE TYPE.  With it, a value is never compressed or moved out
 * of line, and its length is always in a header of four bytes.
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

/* The layout that a stored value means */
const Layout *
layout_type_find(Datum value)
{
	const Layout *layout = find_layout(stored_text(value));

	if (layout == NULL)
		report_damaged_layout();
	return layout;
}

/*
 * The text of a stored value, for output.  The text is parsed only to find out
 * whether it is damaged.
 */
static char *
output_text(Datum value)
{
	const char *text = stored_text(value);
	ParsedLayout parsed;
	LayoutError error;

	if (!layout_parse(text, &parsed, &error))
		report_damaged_layout();
	return pstrdup(text);
}

/* Make the table of layouts.  This loads the built-in ones, too. */
void
layout_type_init(void)
{
	HASHCTL		ctl;

	ctl.keysize = LAYOUT_TEXT_SIZE;
	ctl.entrysize = sizeof(Layout);
	layouts = hash_create("snowflake layouts", 16, &ctl,
						  HASH_ELEM | HASH_STRINGS);
	layout_type_default = find_layout("instagram");
}

/*
 * The slow path of layout_type_argument().  If the argument is a constant, as
 * in a column's default, remember the layout in fn_extra.
 */
const Layout *
layout_type_look_up(FunctionCallInfo fcinfo, int argument)
{
	FmgrInfo   *flinfo = fcinfo->flinfo;
	const FuncExpr *call = (const FuncExpr *) flinfo->fn_expr;
	const Layout *layout = layout_type_find(PG_GETARG_DATUM(argument));

	if (call != NULL && IsA(call, FuncExpr) &&
		list_length(call->args) > argument &&
		IsA(list_nth(call->args, argument), Const))
		flinfo->fn_extra = unconstify(Layout *, layout);
	return layout;
}

/*
 * The built-in layout that sequences with this MAXVALUE serve.  If there is
 * none, return a layout that no sequence serves and that has no name.  When
 * the caller uses the sequence for it, sequence.c raises the right error.
 */
const Layout *
layout_type_find_served(int64 max_value)
{
	/* CREATE SEQUENCE refuses the smallest bigint as a MAXVALUE. */
	static const Layout unserved = {.spec = {.max_value = PG_INT64_MIN}};
	const char *name;

	if (likely(max_value == layout_type_default->spec.max_value))
		return layout_type_default;

	name = layout_of_max_value(max_value);
	return name == NULL ? &unserved : find_layout(name);
}

/*
 * Raise an error because a layout has no such field, which is "timestamp",
 * "shard" or "sequence".
 */
void
layout_type_report_missing(const Layout *layout, const char *field)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("layout \"%s\" has no %s", layout->text, field)));
}

/* Raise an error unless IDs of a layout tell their time. */
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

/* The columns of snowflake_layouts() */
enum
{
	COLUMN_NAME,
	COLUMN_DEFINITION,
	COLUMN_EPOCH,
	COLUMN_TICK,
	COLUMN_SHARDS,
	COLUMN_IDS_PER_TICK,
	COLUMN_EXPIRES,
	COLUMN_MAX_VALUE,
	COLUMNS
};

/* snowflake_layouts(): a row for each built-in layout */
Datum
snowflake_layouts(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	ParsedLayout parsed;
	const char *definition;

	InitMaterializedSRF(fcinfo, 0);

	for (int i = 0; (definition = layout_get_builtin(i, &parsed)) != NULL; i++)
	{
		Layout		layout;
		Datum		values[COLUMNS] = {0};
		bool		nulls[COLUMNS] = {false};

		layout_init(&layout, &parsed);

		values[COLUMN_NAME] = CStringGetTextDatum(layout.text);
		values[COLUMN_DEFINITION] = CStringGetTextDatum(definition);
		values[COLUMN_SHARDS] = Int64GetDatum(layout.shards);
		values[COLUMN_MAX_VALUE] = Int64GetDatum(layout.spec.max_value);

		if (layout.has_clock)
		{
			values[COLUMN_EPOCH] = TimestampTzGetDatum(layout.spec.epoch);
			values[COLUMN_TICK] = DirectFunctionCall2(timestamp_mi,
													  TimestampTzGetDatum(layout.spec.tick_usecs),
													  TimestampTzGetDatum(0));
			values[COLUMN_IDS_PER_TICK] = Int64GetDatum(layout.spec.slots);
		}
		else
		{
			nulls[COLUMN_EPOCH] = true;
			nulls[COLUMN_TICK] = true;
			nulls[COLUMN_IDS_PER_TICK] = true;
		}

		if (layout.has_time)
			values[COLUMN_EXPIRES] = TimestampTzGetDatum(layout_end_time(&layout));
		else
			nulls[COLUMN_EXPIRES] = true;

		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}

	return (Datum) 0;
}

/* The type's input, which stores the text as layout_print() writes it */
Datum
snowflake_layout_in(PG_FUNCTION_ARGS)
{
	char	   *text = PG_GETARG_CSTRING(0);
	ParsedLayout parsed;
	LayoutError error;
	StoredLayout *stored;

	if (!layout_parse(text, &parsed, &error))
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
	layout_print(&parsed, stored->text);
	SET_VARSIZE(stored, offsetof(StoredLayout, text) + strlen(stored->text) + 1);
	PG_RETURN_POINTER(stored);
}

/* The type's output */
Datum
snowflake_layout_out(PG_FUNCTION_ARGS)
{
	PG_RETURN_CSTRING(output_text(PG_GETARG_DATUM(0)));
}

/* The type's binary input: a byte with the version, then the text */
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

/* The type's binary output, of the same form */
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
