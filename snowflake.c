/*-------------------------------------------------------------------------
 *
 * snowflake.c
 *	  Time-sortable 64-bit IDs: module start, settings, SQL functions.
 *
 * Data flows one way: an SQL call comes here, the generator gives it a tick
 * and a slot, the layout makes an ID of them.  This file knows neither how a
 * sequence's page is written nor where in an ID a bit stands.
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <limits.h>

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_sequence.h"
#include "catalog/pg_type.h"
#include "encode.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "funcapi.h"
#include "libpq/pqformat.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "nodes/primnodes.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/hsearch.h"
#include "utils/lsyscache.h"
#include "utils/resowner.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "compat.h"

#include "durable.h"
#include "generator.h"
#include "layout.h"
#include "planner.h"
#include "shared.h"

PG_MODULE_MAGIC_EXT(
					.name = "snowflake",
					.version = "1.0.0"
);

PG_FUNCTION_INFO_V1(snowflake_next_id);
PG_FUNCTION_INFO_V1(snowflake_next_id_in_copy);
PG_FUNCTION_INFO_V1(snowflake_next_ids);
PG_FUNCTION_INFO_V1(snowflake_timestamp);
PG_FUNCTION_INFO_V1(snowflake_shard);
PG_FUNCTION_INFO_V1(snowflake_sequence);
PG_FUNCTION_INFO_V1(snowflake_fields);
PG_FUNCTION_INFO_V1(snowflake_min_id);
PG_FUNCTION_INFO_V1(snowflake_max_id);
PG_FUNCTION_INFO_V1(snowflake_id);
PG_FUNCTION_INFO_V1(snowflake_status);
PG_FUNCTION_INFO_V1(snowflake_sequences);
PG_FUNCTION_INFO_V1(snowflake_alter_sequence);
PG_FUNCTION_INFO_V1(snowflake_advance);
PG_FUNCTION_INFO_V1(snowflake_layouts);
PG_FUNCTION_INFO_V1(snowflake_in);
PG_FUNCTION_INFO_V1(snowflake_layout_in);
PG_FUNCTION_INFO_V1(snowflake_layout_out);
PG_FUNCTION_INFO_V1(snowflake_layout_recv);
PG_FUNCTION_INFO_V1(snowflake_layout_send);
PG_FUNCTION_INFO_V1(snowflake_to_text);
PG_FUNCTION_INFO_V1(snowflake_from_text);
PG_FUNCTION_INFO_V1(snowflake_obfuscate);
PG_FUNCTION_INFO_V1(snowflake_reveal);

PGDLLEXPORT void _PG_init(void);

/* Settings.  Milliseconds, as far as they are times. */
#define SHARD_UNSET			(-1)
#define SHARD_MAX			8191	/* of the layout "instagram" */
#define MAX_LEAD_LIMIT		(100.0 * DAYS_PER_YEAR * SECS_PER_DAY * 1000.0)

static int	shard_setting = SHARD_UNSET;
static double max_lead_setting = 1000.0;
static int	max_wait_setting = 5000;
static bool settings_defined = false;

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
 * A layout, what it asks of a sequence, and the first value of its last year.
 */
typedef struct LayoutCache
{
	char		text[LAYOUT_TEXT_SIZE]; /* hash key */
	Layout		layout;
	TickSpec	spec;
	int64		warn_value;
} LayoutCache;

/*
 * The layouts that this session has used first, and the default one of them.
 * Their number is limited, as anyone can define any number of layouts.  Few
 * sessions use more than two.
 */
#define LAYOUTS_REMEMBERED	32

static HTAB *layouts;
static const LayoutCache *instagram;

static void
fill_layout_cache(LayoutCache *cache, const LayoutDefinition *definition)
{
	static uint64 specs = 0;
	Layout	   *layout = &cache->layout;

	layout_init(layout, definition);

	cache->spec.number = ++specs;
	cache->spec.epoch = layout->epoch;
	cache->spec.tick_usecs = layout->tick;
	cache->spec.slots = layout->slots;
	cache->spec.last_tick = layout->end_tick - 1;
	cache->spec.max_value = layout->max_value;
	cache->spec.is_default = layout->is_default;
	cache->spec.needs_update = !layout->is_builtin;
	cache->spec.layout = cache->text;

	cache->warn_value = PG_INT64_MAX;
	if (layout->has_time)
		cache->warn_value = layout->slots *
			(layout->end_tick - Min(layout->end_tick,
									365 * USECS_PER_DAY / layout->tick));
}

pg_noreturn static void
report_damaged_layout(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("damaged value of type %s", "snowflake_layout")));
}

/*
 * Find a layout by its canonical text, or NULL if there is no such layout.  The
 * result lives at least as long as the given memory context, and is remembered
 * in any case if that is TopMemoryContext.
 */
static const LayoutCache *
find_layout(const char *text, MemoryContext context)
{
	LayoutCache *cache = hash_search(layouts, text, HASH_FIND, NULL);
	LayoutDefinition definition;
	LayoutError error;

	if (cache == NULL && layout_parse(text, &definition, &error))
	{
		if (context == TopMemoryContext ||
			hash_get_num_entries(layouts) < LAYOUTS_REMEMBERED)
			cache = hash_search(layouts, text, HASH_ENTER, NULL);
		else
		{
			cache = MemoryContextAlloc(context, sizeof(LayoutCache));
			strlcpy(cache->text, text, LAYOUT_TEXT_SIZE);
		}
		fill_layout_cache(cache, &definition);
	}
	return cache;
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
static const LayoutCache *
get_layout(Datum value, MemoryContext context)
{
	const char *text = stored_text(value);
	const LayoutCache *cache;

	if (strcmp(text, instagram->text) == 0)
		return instagram;

	cache = find_layout(text, context);
	if (cache == NULL)
		report_damaged_layout();
	return cache;
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
 * Define the settings, unless this is a parallel operation: values that ALTER
 * DATABASE or the like gave them before the library was loaded would be lost
 * for the rest of the session, as none can be set then.
 */
static void
define_settings(void)
{
	if (settings_defined || IsInParallelMode())
		return;
	settings_defined = true;

	DefineCustomIntVariable("snowflake.shard",
							"Shard number that next_id() without arguments puts into its IDs.",
							"-1 means that it is not set.",
							&shard_setting,
							SHARD_UNSET, SHARD_UNSET, SHARD_MAX,
							PGC_USERSET, 0,
							NULL, NULL, NULL);

	DefineCustomRealVariable("snowflake.max_lead",
							 "How far an ID's time may be ahead of the clock before next_id() waits.",
							 "0 means that it is never ahead.",
							 &max_lead_setting,
							 1000.0, 0.0, MAX_LEAD_LIMIT,
							 PGC_SUSET, GUC_UNIT_MS,
							 NULL, NULL, NULL);

	DefineCustomIntVariable("snowflake.max_wait",
							"The longest time that next_id() waits for the clock.",
							"It fails immediately if the required wait is longer.",
							&max_wait_setting,
							5000, 0, INT_MAX,
							PGC_USERSET, GUC_UNIT_MS,
							NULL, NULL, NULL);

	MarkGUCPrefixReserved("snowflake");
}

void
_PG_init(void)
{
	HASHCTL		ctl;

	define_settings();

	ctl.keysize = LAYOUT_TEXT_SIZE;
	ctl.entrysize = sizeof(LayoutCache);
	layouts = hash_create("snowflake layouts", 16, &ctl,
						  HASH_ELEM | HASH_STRINGS);
	instagram = find_layout("instagram", TopMemoryContext);

	shared_init();
	durable_init();
	sequence_init();
	generator_init();
}

static char *
layout_text(const Layout *layout)
{
	char	   *text = palloc(LAYOUT_TEXT_SIZE);

	layout_print(&layout->definition, text);
	return text;
}

/*
 * Look up a call's layout, and keep it for the calls that follow if it is a
 * constant of the query.
 */
static const LayoutCache *
look_up_layout(FunctionCallInfo fcinfo, int argument)
{
	FmgrInfo   *flinfo = fcinfo->flinfo;
	const FuncExpr *call = (const FuncExpr *) flinfo->fn_expr;
	Datum		value = PG_GETARG_DATUM(argument);
	const LayoutCache *cache;

	if (call == NULL || !IsA(call, FuncExpr) ||
		list_length(call->args) <= argument ||
		!IsA(list_nth(call->args, argument), Const))
		return get_layout(value, CurrentMemoryContext);

	cache = get_layout(value, flinfo->fn_mcxt);
	flinfo->fn_extra = unconstify(LayoutCache *, cache);
	return cache;
}

/*
 * The layout that a call was given as an argument, or the default one if the
 * function has no such argument.
 */
static inline const LayoutCache *
layout_argument(FunctionCallInfo fcinfo, int argument)
{
	if (PG_NARGS() <= argument)
		return instagram;
	if (likely(fcinfo->flinfo->fn_extra != NULL))
		return fcinfo->flinfo->fn_extra;
	return look_up_layout(fcinfo, argument);
}

/*
 * The built-in layout that sequences of this MAXVALUE serve.  If there is none,
 * return the default one, so that the caller gets the error of a sequence that
 * does not serve it.
 */
static const LayoutCache *
layout_served(int64 max_value)
{
	static const LayoutCache *last = NULL;
	const char *name;

	if (max_value == instagram->spec.max_value)
		return instagram;
	if (last != NULL && max_value == last->spec.max_value)
		return last;

	name = layout_of_max_value(max_value);
	if (name == NULL)
		return instagram;
	last = find_layout(name, TopMemoryContext);
	return last;
}

pg_noreturn static void
report_missing_field(const Layout *layout, const char *field)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("layout \"%s\" has no %s", layout_text(layout), field)));
}

/*
 * The layout must tell an ID's time.
 */
static void
require_time(const Layout *layout)
{
	if (likely(layout->has_time))
		return;
	if (layout->has_clock)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("layout \"%s\" does not tell an ID's time",
						layout_text(layout)),
				 errdetail("Its timestamp wraps around."),
				 errhint("snowflake_fields() shows the timestamp as it is.")));
	report_missing_field(layout, "timestamp");
}

/*
 * The first moment for which the layout has no ID.
 */
static TimestampTz
end_of_time(const Layout *layout)
{
	return layout->epoch + layout->end_tick * layout->tick;
}

static void
check_shard(const Layout *layout, int64 shard)
{
	if (likely(shard >= 0 && shard < layout->shards))
		return;

	if (!layout->has_shard)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("shard %lld is out of range", (long long) shard),
				 errdetail("The layout \"%s\" has no shard, so it must be 0.",
						   layout_text(layout))));
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("shard %lld is out of range", (long long) shard),
			 errdetail("The shards of the layout \"%s\" are 0 to %lld.",
					   layout_text(layout), (long long) layout->shards - 1),
			 errhint("Use a shard that no other server uses. To compute it from a key, which may be negative, use abs(key %% %lld).",
					 (long long) layout->shards)));
}

/*
 * Once in a session, say that a layout is about to end.
 */
static void
warn_of_end(const Layout *layout)
{
	static bool warned = false;

	if (warned)
		return;
	warned = true;
	ereport(WARNING,
			(errcode(ERRCODE_WARNING),
			 errmsg("layout \"%s\" ends at %s",
					layout_text(layout),
					timestamptz_to_str(end_of_time(layout))),
			 errhint("Move to a layout with a later epoch before then.")));
}

/*
 * Once in a session, say that IDs look like those of tests.
 */
static void
warn_of_tests(void)
{
	static bool warned = false;

	if (warned)
		return;
	warned = true;
	ereport(WARNING,
			(errcode(ERRCODE_WARNING),
			 errmsg("launch 0 of the layout \"decimal\" is for tests"),
			 errhint("Give the number of the launch as the shard.")));
}

static TickLimits
current_limits(void)
{
	TickLimits	limits;

	limits.max_lead = (int64) (max_lead_setting * 1000.0);
	limits.max_wait = max_wait_setting * INT64CONST(1000);
	return limits;
}

/*
 * Take values of a sequence, for IDs of a shard: up to *count, one after the
 * other, and return the first.
 */
static inline int64
next_values(int64 shard, Oid sequence, const LayoutCache *cache, int64 *count)
{
	TickLimits	limits = current_limits();
	int64		value;

	check_shard(&cache->layout, shard);

	value = generator_next(sequence, &cache->spec, &limits, count);

	if (unlikely(value >= cache->warn_value))
		warn_of_end(&cache->layout);
	if (unlikely(shard == 0 && cache->layout.definition.kind == LAYOUT_DECIMAL))
		warn_of_tests();

	return value;
}

pg_noreturn static void
refuse_null(const char *argument, const char *hint)
{
	ereport(ERROR,
			(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
			 errmsg("%s must not be null", argument),
			 hint == NULL ? 0 : errhint("%s", hint)));
}

static int64
shard_of_setting(void)
{
	if (shard_setting == SHARD_UNSET)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("\"snowflake.shard\" is not set"),
				 errhint("Set it with ALTER DATABASE, which takes effect in new sessions, or with SET in this one, or give the shard as an argument: next_id(5).")));
	return shard_setting;
}

/*
 * Make an ID.  What the caller does not name is the shard of the setting, the
 * sequence that came with next_id(), or the layout that the sequence serves.
 * "function" is the OID of the next_id() that was called.
 *
 * The functions are not strict: a NULL shard must not become a NULL ID.
 */
static pg_attribute_always_inline Datum
make_id(FunctionCallInfo fcinfo, Oid function, const int nargs)
{
	static const char *const names[] = {"shard", "sequence", "layout"};
	int64		shard;
	Oid			sequence;
	const LayoutCache *cache;
	int64		count = 1;
	int64		value;

	define_settings();

	for (int i = 0; i < nargs; i++)
	{
		if (unlikely(PG_ARGISNULL(i)))
			refuse_null(names[i], NULL);
	}

	shard = nargs > 0 ? PG_GETARG_INT64(0) : shard_of_setting();
	if (nargs < 2)
	{
		sequence = sequence_default(function);
		cache = instagram;
	}
	else
	{
		sequence = PG_GETARG_OID(1);
		cache = nargs > 2 ? layout_argument(fcinfo, 2) :
			layout_served(sequence_lock(sequence));
	}

	value = next_values(shard, sequence, cache, &count);
	PG_RETURN_INT64((int64) layout_id(&cache->layout, value, shard));
}

/*
 * The same, with code for each number of arguments
 */
static inline Datum
next_id(FunctionCallInfo fcinfo, Oid function)
{
	switch (PG_NARGS())
	{
		case 0:
			return make_id(fcinfo, function, 0);
		case 1:
			return make_id(fcinfo, function, 1);
		case 2:
			return make_id(fcinfo, function, 2);
		default:
			return make_id(fcinfo, function, 3);
	}
}

/*
 * next_id(), next_id(shard), next_id(shard, sequence) and
 * next_id(shard, sequence, layout)
 */
Datum
snowflake_next_id(PG_FUNCTION_ARGS)
{
	return next_id(fcinfo, fcinfo->flinfo->fn_oid);
}

/*
 * The state of a call of next_ids()
 */
typedef struct NextIds
{
	int64		shard;
	Oid			sequence;
	const LayoutCache *cache;
	int64		wanted;			/* number of values that are yet to be taken */
	int64		value;			/* the next one of the values taken */
	int64		count;			/* number of values taken, from that one on */
} NextIds;

/*
 * next_ids(shard, count), next_ids(shard, count, sequence) and
 * next_ids(shard, count, sequence, layout)
 *
 * Values are taken in batches, each under one hold of the page's lock.  Small
 * batches limit both the time under the lock and the IDs wasted when the caller
 * reads only a few rows.
 */
#define NEXT_IDS_BATCH		1024

Datum
snowflake_next_ids(PG_FUNCTION_ARGS)
{
	FuncCallContext *funcctx;
	NextIds    *ids;

	if (SRF_IS_FIRSTCALL())
	{
		int64		count;

		define_settings();

		for (int i = 0; i < PG_NARGS(); i++)
		{
			static const char *const names[] =
			{"shard", "count", "sequence", "layout"};

			if (PG_ARGISNULL(i))
				refuse_null(names[i], NULL);
		}
		count = PG_GETARG_INT64(1);
		if (count < 1)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("count %lld is out of range", (long long) count),
					 errhint("Ask for one ID or more.")));

		funcctx = SRF_FIRSTCALL_INIT();
		ids = MemoryContextAllocZero(funcctx->multi_call_memory_ctx,
									 sizeof(NextIds));
		ids->shard = PG_GETARG_INT64(0);
		if (PG_NARGS() < 3)
		{
			ids->sequence = sequence_default(fcinfo->flinfo->fn_oid);
			ids->cache = instagram;
		}
		else
		{
			ids->sequence = PG_GETARG_OID(2);
			ids->cache = PG_NARGS() > 3 ?
				get_layout(PG_GETARG_DATUM(3), funcctx->multi_call_memory_ctx) :
				layout_served(sequence_lock(ids->sequence));
		}
		ids->wanted = count;
		funcctx->user_fctx = ids;
	}

	funcctx = SRF_PERCALL_SETUP();
	ids = funcctx->user_fctx;

	if (ids->count == 0)
	{
		if (ids->wanted == 0)
			SRF_RETURN_DONE(funcctx);

		ids->count = Min(ids->wanted, NEXT_IDS_BATCH);
		ids->value = next_values(ids->shard, ids->sequence, ids->cache,
								 &ids->count);
		ids->wanted -= ids->count;
	}

	ids->count--;
	SRF_RETURN_NEXT(funcctx,
					Int64GetDatum((int64) layout_id(&ids->cache->layout,
													ids->value++,
													ids->shard)));
}

/*
 * In COPY another function takes the place of next_id() (see planner.c).  Its
 * caller needs the right to call next_id() with the same arguments.  Returns the
 * OID of that function.
 */
static Oid
check_execute_next_id(Oid function)
{
	Oid			replaced = function_beside(function, "next_id");

	if (!OidIsValid(replaced))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_FUNCTION),
				 errmsg("function next_id() of the extension does not exist"),
				 errhint("If it was renamed or moved, give it back its name and schema.")));
	if (!MayExecute(replaced, GetUserId()))
		aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_FUNCTION, "next_id");
	return replaced;
}

/*
 * snowflake_next_id_in_copy(), with the arguments of any next_id()
 */
Datum
snowflake_next_id_in_copy(PG_FUNCTION_ARGS)
{
	FmgrInfo   *flinfo = fcinfo->flinfo;

	/*
	 * Check once for each place, as for other functions.  Where the caller names
	 * a layout, fn_extra is for that, and nobody needs to know which function was
	 * replaced.  A layout that is not constant is not worth more memory: then the
	 * check is repeated.
	 */
	if (unlikely(flinfo->fn_extra == NULL))
	{
		Oid			replaced = check_execute_next_id(flinfo->fn_oid);

		if (PG_NARGS() < 3)
		{
			flinfo->fn_extra = MemoryContextAlloc(flinfo->fn_mcxt, sizeof(Oid));
			*(Oid *) flinfo->fn_extra = replaced;
		}
	}
	return next_id(fcinfo,
				   PG_NARGS() < 3 ? *(Oid *) flinfo->fn_extra : InvalidOid);
}

Datum
snowflake_timestamp(PG_FUNCTION_ARGS)
{
	int64		id = PG_GETARG_INT64(0);
	const Layout *layout = &layout_argument(fcinfo, 1)->layout;
	TimestampTz ts;

	require_time(layout);
	if (!layout_tick_time(layout, layout_tick(layout, (uint64) id), &ts))
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_FIELD_OVERFLOW),
				 errmsg("time of ID %lld is out of range for a timestamp in layout \"%s\"",
						(long long) id, layout_text(layout))));
	PG_RETURN_TIMESTAMPTZ(ts);
}

Datum
snowflake_shard(PG_FUNCTION_ARGS)
{
	uint64		id = (uint64) PG_GETARG_INT64(0);
	const Layout *layout = &layout_argument(fcinfo, 1)->layout;

	if (!layout->has_shard)
		report_missing_field(layout, "shard");
	PG_RETURN_INT32((int32) layout_shard(layout, id));
}

Datum
snowflake_sequence(PG_FUNCTION_ARGS)
{
	uint64		id = (uint64) PG_GETARG_INT64(0);
	const Layout *layout = &layout_argument(fcinfo, 1)->layout;

	if (!layout->has_sequence)
		report_missing_field(layout, "sequence");
	PG_RETURN_INT32((int32) layout_slot(layout, id));
}

/*
 * The fields of an ID as they stand in it, most significant first.
 */
Datum
snowflake_fields(PG_FUNCTION_ARGS)
{
	uint64		id = (uint64) PG_GETARG_INT64(0);
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	const Layout *layout = &layout_argument(fcinfo, 1)->layout;

	InitMaterializedSRF(fcinfo, 0);

	for (int i = 0; i < layout->nfields; i++)
	{
		Datum		values[2];
		bool		nulls[2] = {false, false};

		values[0] = CStringGetTextDatum(layout->fields[i].name);
		values[1] = Int64GetDatum(layout_field(layout, id, i));
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}

	return (Datum) 0;
}

Datum
snowflake_min_id(PG_FUNCTION_ARGS)
{
	TimestampTz ts = PG_GETARG_TIMESTAMPTZ(0);
	const Layout *layout = &layout_argument(fcinfo, 1)->layout;

	require_time(layout);
	PG_RETURN_INT64(layout_min_id(layout, ts));
}

Datum
snowflake_max_id(PG_FUNCTION_ARGS)
{
	TimestampTz ts = PG_GETARG_TIMESTAMPTZ(0);
	const Layout *layout = &layout_argument(fcinfo, 1)->layout;

	require_time(layout);
	PG_RETURN_INT64(layout_max_id(layout, ts));
}

/*
 * Compose an ID from its parts.
 */
Datum
snowflake_id(PG_FUNCTION_ARGS)
{
	TimestampTz ts = PG_GETARG_TIMESTAMPTZ(0);
	int64		shard = PG_GETARG_INT64(1);
	int64		slot = PG_GETARG_INT64(2);
	const Layout *layout = &layout_argument(fcinfo, 3)->layout;
	int64		last_slot = layout->first_slot + layout->slots - 1;
	int64		tick;
	uint64		id;

	if (!layout->has_clock)
		report_missing_field(layout, "timestamp");

	if (!layout_time_tick(layout, ts, &tick))
	{
		/* timestamptz_to_str() has one buffer. */
		char	   *given = pstrdup(timestamptz_to_str(ts));
		char	   *first = pstrdup(timestamptz_to_str(layout->epoch));

		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_FIELD_OVERFLOW),
				 errmsg("timestamp %s is out of range", given),
				 errdetail("The layout \"%s\" begins at %s and ends before %s.",
						   layout_text(layout), first,
						   timestamptz_to_str(end_of_time(layout)))));
	}

	check_shard(layout, shard);

	if (!layout->has_sequence && slot != 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("sequence %lld is out of range", (long long) slot),
				 errdetail("The layout \"%s\" has no sequence, so it must be 0.",
						   layout_text(layout))));
	if (slot < layout->first_slot || slot > last_slot)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("sequence %lld is out of range", (long long) slot),
				 errdetail("The sequence numbers of the layout \"%s\" are %lld to %lld.",
						   layout_text(layout),
						   (long long) layout->first_slot,
						   (long long) last_slot),
				 errhint("Number the rows of each tick of %lld %s from %lld to %lld. If there are more, give the rest a later time%s.",
						 (long long) (layout->tick < 1000 ? layout->tick : layout->tick / 1000),
						 layout->tick < 1000 ? "us" : "ms",
						 (long long) layout->first_slot,
						 (long long) last_slot,
						 layout->has_shard ? " or another shard" : "")));

	id = layout_compose(layout, tick, shard, slot);
	if (id == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("cannot compose the ID 0"),
				 errdetail("IDs are positive.")));

	PG_RETURN_INT64((int64) id);
}

static Datum
interval_datum(int64 usecs)
{
	Interval   *interval = palloc0(sizeof(Interval));

	interval->time = usecs;
	return IntervalPGetDatum(interval);
}

/*
 * The time of a sequence's last value, which must have been taken, and how far
 * that is ahead of the clock.
 */
static TimestampTz
last_time(const Layout *layout, const TickStatus *status)
{
	return layout->epoch + status->value / layout->slots * layout->tick;
}

static Datum
lead_datum(const Layout *layout, const TickStatus *status)
{
	return interval_datum(Max(last_time(layout, status) - GetCurrentTimestamp(), 0));
}

/*
 * How a sequence stands: the last ID's time, how far that is ahead of the
 * clock, how far the WAL covers use of the sequence beyond it, and the end.
 * Of these, a layout without a clock has none.
 */
Datum
snowflake_status(PG_FUNCTION_ARGS)
{
	Oid			sequence = PG_NARGS() > 0 ? PG_GETARG_OID(0) :
		sequence_default(fcinfo->flinfo->fn_oid);
	const LayoutCache *cache = PG_NARGS() > 1 ? layout_argument(fcinfo, 1) :
		layout_served(sequence_max_value(sequence));
	const Layout *layout = &cache->layout;
	TickStatus	status;
	TupleDesc	tupdesc;
	Datum		values[4];
	bool		nulls[4] = {true, true, true, true};
	TickLimits	limits = current_limits();

	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");

	(void) generator_status(sequence, &cache->spec, &limits, true, &status);

	if (status.called && layout->has_clock)
	{
		int64		tick = status.value / layout->slots;
		int64		logged = status.logged / layout->slots;

		values[0] = TimestampTzGetDatum(last_time(layout, &status));
		values[1] = lead_datum(layout, &status);
		values[2] = interval_datum((logged - tick) * layout->tick);
		nulls[0] = nulls[1] = nulls[2] = false;
	}

	if (layout->has_time)
	{
		values[3] = TimestampTzGetDatum(end_of_time(layout));
		nulls[3] = false;
	}

	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(tupdesc),
													  values, nulls)));
}

/*
 * Does an error say something of the sequence that is looked at?  All others are
 * of the server or the session: a cancel or a timeout, a lack of memory, locks
 * or open files, or trouble with a disk.
 */
static bool
is_error_of_sequence(int sqlerrcode)
{
	switch (sqlerrcode)
	{
		case ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE:
		case ERRCODE_INSUFFICIENT_PRIVILEGE:
		case ERRCODE_UNDEFINED_TABLE:
		case ERRCODE_WRONG_OBJECT_TYPE:
		case ERRCODE_UNDEFINED_FILE:
		case ERRCODE_DATA_CORRUPTED:
			return true;
		default:
			return false;
	}
}

/*
 * Read a sequence's state, and say what would happen to a caller of next_id().
 * Returns NULL if the sequence has been dropped.
 *
 * An error of one sequence must not make snowflake_sequences() fail.  So an
 * error becomes a state, and a subtransaction cleans up after it.  A sequence
 * that another session is altering is not waited for.
 */
static const char *
state_without_error(Oid sequence, const TickSpec *spec, TickStatus *status)
{
	static const char *const states[] = {"ok", "ahead", "waits", "refuses"};
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	TickLimits	limits = current_limits();
	const char *volatile state = NULL;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);

	PG_TRY();
	{
		if (!generator_status(sequence, spec, &limits, false, status))
			status->state = TICK_WAITS;
		state = states[status->state];
		ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();

		if (!is_error_of_sequence(error->sqlerrcode))
			ReThrowError(error);
		if (error->sqlerrcode == ERRCODE_INSUFFICIENT_PRIVILEGE)
			state = "no privilege";
		else if (error->sqlerrcode != ERRCODE_UNDEFINED_TABLE)
			state = "refuses";
		FreeErrorData(error);
	}
	PG_END_TRY();

	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	return state;
}

/*
 * Find the sequences that serve a built-in layout.  Temporary ones are left out.
 */
static List *
find_sequences(void)
{
	Relation	catalog = table_open(SequenceRelationId, AccessShareLock);
	SysScanDesc scan = systable_beginscan(catalog, InvalidOid, false,
										  NULL, 0, NULL);
	List	   *sequences = NIL;
	HeapTuple	tuple;

	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_sequence form = (Form_pg_sequence) GETSTRUCT(tuple);
		HeapTuple	class;

		if (layout_of_max_value(form->seqmax) == NULL)
			continue;
		class = SearchSysCache1(RELOID, ObjectIdGetDatum(form->seqrelid));
		if (!HeapTupleIsValid(class))
			continue;			/* dropped just now */
		if (((Form_pg_class) GETSTRUCT(class))->relpersistence != RELPERSISTENCE_TEMP)
			sequences = lappend(sequences, heap_copytuple(tuple));
		ReleaseSysCache(class);
	}
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
	return sequences;
}

/*
 * The sequences that make IDs, and how each of them stands.
 */
Datum
snowflake_sequences(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	ListCell   *lc;

	define_settings();
	InitMaterializedSRF(fcinfo, 0);

	foreach(lc, find_sequences())
	{
		Form_pg_sequence form = (Form_pg_sequence) GETSTRUCT((HeapTuple) lfirst(lc));
		const LayoutCache *cache = layout_served(form->seqmax);
		const Layout *layout = &cache->layout;
		TickStatus	status = {0};
		const char *state;
		Datum		values[6];
		bool		nulls[6] = {false, false, true, true, true, false};

		CHECK_FOR_INTERRUPTS();

		state = state_without_error(form->seqrelid, &cache->spec, &status);
		if (state == NULL)
			continue;			/* dropped since we found it */

		values[0] = ObjectIdGetDatum(form->seqrelid);
		values[1] = CStringGetTextDatum(layout_text(layout));
		if (status.called && layout->has_clock)
		{
			values[2] = TimestampTzGetDatum(last_time(layout, &status));
			values[3] = lead_datum(layout, &status);
			nulls[2] = nulls[3] = false;
		}
		if (layout->has_time)
		{
			values[4] = TimestampTzGetDatum(end_of_time(layout));
			nulls[4] = false;
		}
		values[5] = CStringGetTextDatum(state);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}

	return (Datum) 0;
}

/*
 * Making a sequence serve a layout
 */

/*
 * A value that no counter of rows reaches, but every clock's has passed: two
 * to the power of 40.  The built-in layout with the smallest values of this
 * day, "trace", passed it in 2004.
 */
#define COUNTER_LIMIT		(INT64CONST(1) << 40)

/*
 * Check that a sequence's last value may be followed by one of the layout.  If
 * the sequence has served another layout, the value is no time of this one.
 */
static void
check_last_value(const char *name, const Layout *layout, int64 max_value,
				 int64 last, bool called)
{
	if (max_value == layout->max_value)
		return;

	if (called && last >= COUNTER_LIMIT)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot make sequence \"%s\" serve layout \"%s\"",
						name, layout_text(layout)),
				 errdetail("Its last value %lld is too large for a counter of rows, so the sequence may have been used for another layout.",
						   (long long) last),
				 errhint("Use a new sequence.")));

	if (last < 0 || last > layout->max_value)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot make sequence \"%s\" serve layout \"%s\"",
						name, layout_text(layout)),
				 errdetail("Its last value is %lld, and the values of the layout are 0 to %lld.",
						   (long long) last, (long long) layout->max_value),
				 errhint("Use a new sequence.")));
}

/*
 * Where in pg_sequence the row of a sequence is.  ALTER SEQUENCE always writes
 * a new one.
 */
static ItemPointerData
row_of_sequence(Oid sequence)
{
	HeapTuple	tuple = SearchSysCache1(SEQRELID, ObjectIdGetDatum(sequence));
	ItemPointerData row;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for sequence %u", sequence);
	row = tuple->t_self;
	ReleaseSysCache(tuple);
	return row;
}

/*
 * snowflake_alter_sequence(sequence, layout)
 *
 * Not strict, like next_id(): a NULL must not pass for success.
 */
Datum
snowflake_alter_sequence(PG_FUNCTION_ARGS)
{
	const Layout *layout;
	Oid			sequence;
	char	   *name;
	char	   *command;
	int			result;
	int64		max_value;
	int64		last;
	bool		called;
	ItemPointerData row;
	ItemPointerData new_row;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		refuse_null(PG_ARGISNULL(0) ? "sequence" : "layout", NULL);
	sequence = PG_GETARG_OID(0);
	layout = &layout_argument(fcinfo, 1)->layout;

	PreventCommandDuringRecovery("snowflake_alter_sequence()");
	PreventCommandIfReadOnly("snowflake_alter_sequence()");

	/* From here on no other session takes a value. */
	name = sequence_open_to_alter(sequence, &max_value);

	if (!layout->is_default && sequence_owned_by_extension(sequence))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot make sequence \"%s\" serve layout \"%s\"",
						get_rel_name(sequence), layout_text(layout)),
				 errdetail("The extension's own sequence serves layout \"instagram\" only."),
				 errhint("Use a new sequence.")));

	last = generator_last_value(sequence, &called);
	check_last_value(get_rel_name(sequence), layout, max_value, last, called);

	row = row_of_sequence(sequence);
	SPI_connect();
	command = psprintf("ALTER SEQUENCE %s AS pg_catalog.int8 INCREMENT BY 1 MAXVALUE %lld CACHE 1 NO CYCLE OWNED BY NONE",
					   name, (long long) layout->max_value);
	result = SPI_execute(command, false, 0);
	if (result != SPI_OK_UTILITY)
		elog(ERROR, "unexpected result %d of \"%s\"", result, command);
	SPI_finish();

	/*
	 * The command names the sequence, and no lock keeps its schema from being
	 * renamed.  If the name has come to mean another sequence, that one was
	 * altered, which this error undoes.  Nobody else can have altered ours,
	 * because we hold the lock of ALTER SEQUENCE on it.
	 */
	new_row = row_of_sequence(sequence);
	if (ItemPointerEquals(&row, &new_row))
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("could not alter sequence \"%s\" because of a concurrent change",
						get_rel_name(sequence)),
				 errdetail("Its schema was renamed, and its name became that of another sequence."),
				 errhint("Call snowflake_alter_sequence() again.")));
	PG_RETURN_VOID();
}

static int64
check_positive(int64 id)
{
	if (id < 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("ID %lld is not positive", (long long) id),
				 errdetail("Valid IDs are 1 to %lld.",
						   (long long) PG_INT64_MAX)));
	return id;
}

/*
 * The last value whose IDs have the time of a given ID.  Refuse an ID that
 * cannot have been made for the layout yet, because to be beyond it the sequence
 * would have to be far ahead of the clock.
 */
static int64
value_of_id(const Layout *layout, int64 id)
{
	TimestampTz now = GetCurrentTimestamp();
	uint64		tick = layout_tick(layout, (uint64) check_positive(id));
	TimestampTz ts;

	/* An ID that is too large for the layout has bits that are in no field. */
	if (!layout_tick_time(layout, tick, &ts) || id > layout_max_id(layout, ts))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("ID %lld is too large for layout \"%s\"",
						(long long) id, layout_text(layout)),
				 errhint("Use the sequence that serves the layout of this ID.")));
	if (ts - now > USECS_PER_DAY)
	{
		/* timestamptz_to_str() has one buffer. */
		char	   *time = pstrdup(timestamptz_to_str(ts));

		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("ID %lld is more than a day ahead of the clock",
						(long long) id),
				 errdetail("In layout \"%s\" its time is %s; the clock says %s.",
						   layout_text(layout), time, timestamptz_to_str(now)),
				 errhint("Check the clock, and that it is an ID of this layout. If it was made while a clock was fast, use a new sequence with a new shard.")));
	}
	return Min((int64) tick * layout->slots + layout->slots - 1,
			   layout->max_value);
}

/*
 * snowflake_advance(sequence, id) and snowflake_advance(sequence, id, layout)
 *
 * Not strict, like next_id(): a NULL must not pass for success.
 */
Datum
snowflake_advance(PG_FUNCTION_ARGS)
{
	Oid			sequence;
	const LayoutCache *cache;
	TickLimits	limits;

	define_settings();

	PreventCommandDuringRecovery("snowflake_advance()");
	PreventCommandIfReadOnly("snowflake_advance()");
	PreventCommandIfParallelMode("snowflake_advance()");

	for (int i = 0; i < PG_NARGS(); i++)
	{
		static const char *const names[] = {"sequence", "id", "layout"};

		if (PG_ARGISNULL(i))
			refuse_null(names[i],
						i == 1 ? "If it is the largest ID of a table without rows, there is nothing to do." : NULL);
	}

	sequence = PG_GETARG_OID(0);
	cache = PG_NARGS() > 2 ? layout_argument(fcinfo, 2) :
		layout_served(sequence_lock(sequence));
	sequence_open(sequence_find(sequence), &cache->spec, SEQUENCE_SET);

	require_time(&cache->layout);
	limits = current_limits();
	generator_advance(sequence, &cache->spec, &limits,
					  value_of_id(&cache->layout, PG_GETARG_INT64(1)));
	PG_RETURN_VOID();
}

/*
 * The built-in layouts
 */
Datum
snowflake_layouts(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;

	InitMaterializedSRF(fcinfo, 0);

	for (int i = 0; i < layout_builtins(); i++)
	{
		LayoutDefinition definition;
		Layout		layout;
		Datum		values[8] = {0};
		bool		nulls[8] = {false};

		values[1] = CStringGetTextDatum(layout_builtin(i, &definition));
		layout_init(&layout, &definition);

		values[0] = CStringGetTextDatum(layout_text(&layout));
		values[2] = TimestampTzGetDatum(layout.epoch);
		values[3] = interval_datum(layout.tick);
		values[4] = Int64GetDatum(layout.shards);
		values[5] = Int64GetDatum(layout.slots);
		nulls[2] = nulls[3] = nulls[5] = !layout.has_clock;
		nulls[6] = !layout.has_time;
		if (layout.has_time)
			values[6] = TimestampTzGetDatum(end_of_time(&layout));
		values[7] = Int64GetDatum(layout.max_value);
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

/*
 * Type snowflake.  Only its errors differ from those of bigint.
 */
Datum
snowflake_in(PG_FUNCTION_ARGS)
{
	const char *text = PG_GETARG_CSTRING(0);
	int64		value;
	int			sqlerrcode = ParseBigint(text, &value);

	if (sqlerrcode == ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE)
		ereturn(fcinfo->context, (Datum) 0,
				(errcode(sqlerrcode),
				 errmsg("value \"%s\" is out of range for type %s",
						text, "snowflake")));
	if (sqlerrcode != ERRCODE_SUCCESSFUL_COMPLETION)
		ereturn(fcinfo->context, (Datum) 0,
				(errcode(sqlerrcode),
				 errmsg("invalid input syntax for type %s: \"%s\"",
						"snowflake", text)));
	PG_RETURN_INT64(value);
}

/*
 * IDs as text, and IDs that do not show their order
 */

static const Encoding *
get_encoding(text *name)
{
	const Encoding *encoding = encoding_named(VARDATA_ANY(name),
											  VARSIZE_ANY_EXHDR(name));

	if (encoding == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("unrecognized encoding: \"%s\"", text_to_cstring(name)),
				 errhint("The encodings are base62, base32 and base64url.")));

	return encoding;
}

Datum
snowflake_to_text(PG_FUNCTION_ARGS)
{
	int64		id = PG_GETARG_INT64(0);
	const Encoding *encoding = get_encoding(PG_GETARG_TEXT_PP(1));
	char		string[ENCODE_MAX_WIDTH];
	int			length;

	if (id < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("ID %lld has no text form", (long long) id),
				 errdetail("IDs with a text form are 0 to %lld.",
						   (long long) PG_INT64_MAX)));

	length = id_encode(encoding, id, string);

	PG_RETURN_TEXT_P(cstring_to_text_with_len(string, length));
}

static bool
all_digits(const char *string, int length)
{
	for (int i = 0; i < length; i++)
	{
		if (string[i] < '0' || string[i] > '9')
			return false;
	}
	return true;
}

Datum
snowflake_from_text(PG_FUNCTION_ARGS)
{
	text	   *encoded = PG_GETARG_TEXT_PP(0);
	const Encoding *encoding = get_encoding(PG_GETARG_TEXT_PP(1));
	const char *string = VARDATA_ANY(encoded);
	int			length = VARSIZE_ANY_EXHDR(encoded);
	const char *at;
	DecodeResult result;
	int			position;
	int			at_length;
	int64		id;

	result = id_decode(encoding, string, length, &id, &position);
	if (result == DECODE_OK)
		PG_RETURN_INT64(id);

	/* The character at fault, whole. */
	at = string + position - 1;
	at_length = pg_mbcharcliplen(at, length - (position - 1), 1);

	ereport(ERROR,
			(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
			 errmsg("invalid %s ID \"%s\"",
					encoding->name, text_to_cstring(encoded)),
			 result == DECODE_BAD_DIGIT ?
			 errdetail("The character \"%.*s\" at position %d is not a digit of %s.",
					   at_length, at, position, encoding->name) :
			 result == DECODE_TOO_LARGE ?
			 errdetail("The digit \"%.*s\" at position %d makes it larger than %lld.",
					   at_length, at, position, (long long) PG_INT64_MAX) :
			 result == DECODE_LEADING_ZERO ?
			 errdetail("The digit \"%.*s\" at position %d is a leading zero, which %s does not allow.",
					   at_length, at, position, encoding->name) :
			 result == DECODE_TOO_LONG ?
			 errdetail("The string continues at position %d, but the longest ID in %s has %d characters.",
					   position, encoding->name, encoding->width) :
			 encoding->padded ?
			 errdetail("The string ends before position %d, but every ID in %s has %d characters.",
					   position, encoding->name, encoding->width) :
			 errdetail("The string is empty."),
			 result == DECODE_TOO_LONG && all_digits(string, length) ?
			 errhint("If these are the ID's decimal digits, cast the string to bigint.") : 0));
}

Datum
snowflake_obfuscate(PG_FUNCTION_ARGS)
{
	int64		id = check_positive(PG_GETARG_INT64(0));

	PG_RETURN_INT64(id_obfuscate(id, PG_GETARG_INT64(1)));
}

Datum
snowflake_reveal(PG_FUNCTION_ARGS)
{
	int64		id = check_positive(PG_GETARG_INT64(0));

	PG_RETURN_INT64(id_reveal(id, PG_GETARG_INT64(1)));
}
