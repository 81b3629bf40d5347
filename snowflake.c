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

#include "access/xact.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "compat.h"

#include "durable.h"
#include "generator.h"
#include "layout_type.h"
#include "planner.h"
#include "shared.h"
#include "snowflake.h"

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
 * Define the settings, unless this is a parallel operation: values that ALTER
 * DATABASE or the like gave them before the library was loaded would be lost
 * for the rest of the session, as none can be set then.
 */
void
snowflake_define_settings(void)
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
	snowflake_define_settings();

	layout_type_init();
	shared_init();
	durable_init();
	sequence_init();
	generator_init();
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
						   layout->text)));
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("shard %lld is out of range", (long long) shard),
			 errdetail("The shards of the layout \"%s\" are 0 to %lld.",
					   layout->text, (long long) layout->shards - 1),
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
					layout->text,
					timestamptz_to_str(layout_end_time(layout))),
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

TickLimits
snowflake_limits(void)
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
next_values(int64 shard, Oid sequence, const Layout *layout, int64 *count)
{
	TickLimits	limits = snowflake_limits();
	int64		value;

	check_shard(layout, shard);

	value = generator_next(sequence, &layout->spec, &limits, count);

	if (unlikely(value >= layout->last_year))
		warn_of_end(layout);
	if (unlikely(shard == 0 && layout->definition.kind == LAYOUT_DECIMAL))
		warn_of_tests();

	return value;
}

void
snowflake_refuse_null(const char *argument, const char *hint)
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
	const Layout *layout;
	int64		count = 1;
	int64		value;

	snowflake_define_settings();

	for (int i = 0; i < nargs; i++)
	{
		if (unlikely(PG_ARGISNULL(i)))
			snowflake_refuse_null(names[i], NULL);
	}

	shard = nargs > 0 ? PG_GETARG_INT64(0) : shard_of_setting();
	if (nargs < 2)
	{
		sequence = sequence_default(function);
		layout = layout_type_default;
	}
	else
	{
		sequence = PG_GETARG_OID(1);
		layout = nargs > 2 ? layout_type_argument(fcinfo, 2) :
			layout_type_served(sequence_lock(sequence));
	}

	value = next_values(shard, sequence, layout, &count);
	PG_RETURN_INT64((int64) layout_id(layout, value, shard));
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
	const Layout *layout;
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

		snowflake_define_settings();

		for (int i = 0; i < PG_NARGS(); i++)
		{
			static const char *const names[] =
			{"shard", "count", "sequence", "layout"};

			if (PG_ARGISNULL(i))
				snowflake_refuse_null(names[i], NULL);
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
			ids->layout = layout_type_default;
		}
		else
		{
			ids->sequence = PG_GETARG_OID(2);
			ids->layout = PG_NARGS() > 3 ?
				layout_type_get(PG_GETARG_DATUM(3), funcctx->multi_call_memory_ctx) :
				layout_type_served(sequence_lock(ids->sequence));
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
		ids->value = next_values(ids->shard, ids->sequence, ids->layout,
								 &ids->count);
		ids->wanted -= ids->count;
	}

	ids->count--;
	SRF_RETURN_NEXT(funcctx,
					Int64GetDatum((int64) layout_id(ids->layout,
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
	Oid			replaced = planner_find_counterpart(function, "next_id");

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
	const Layout *layout = layout_type_argument(fcinfo, 1);
	TimestampTz ts;

	layout_type_require_time(layout);
	if (!layout_tick_time(layout, layout_tick(layout, (uint64) id), &ts))
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_FIELD_OVERFLOW),
				 errmsg("time of ID %lld is out of range for a timestamp in layout \"%s\"",
						(long long) id, layout->text)));
	PG_RETURN_TIMESTAMPTZ(ts);
}

Datum
snowflake_shard(PG_FUNCTION_ARGS)
{
	uint64		id = (uint64) PG_GETARG_INT64(0);
	const Layout *layout = layout_type_argument(fcinfo, 1);

	if (!layout->has_shard)
		layout_type_report_missing(layout, "shard");
	PG_RETURN_INT32((int32) layout_shard(layout, id));
}

Datum
snowflake_sequence(PG_FUNCTION_ARGS)
{
	uint64		id = (uint64) PG_GETARG_INT64(0);
	const Layout *layout = layout_type_argument(fcinfo, 1);

	if (!layout->has_sequence)
		layout_type_report_missing(layout, "sequence");
	PG_RETURN_INT32((int32) layout_number(layout, id));
}

/*
 * The fields of an ID as they stand in it, most significant first.
 */
Datum
snowflake_fields(PG_FUNCTION_ARGS)
{
	uint64		id = (uint64) PG_GETARG_INT64(0);
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	const Layout *layout = layout_type_argument(fcinfo, 1);

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
	const Layout *layout = layout_type_argument(fcinfo, 1);

	layout_type_require_time(layout);
	PG_RETURN_INT64(layout_min_id(layout, ts));
}

Datum
snowflake_max_id(PG_FUNCTION_ARGS)
{
	TimestampTz ts = PG_GETARG_TIMESTAMPTZ(0);
	const Layout *layout = layout_type_argument(fcinfo, 1);

	layout_type_require_time(layout);
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
	const Layout *layout = layout_type_argument(fcinfo, 3);
	int64		last_number = layout->first_number + layout->spec.slots - 1;
	int64		tick;
	uint64		id;

	if (!layout->has_clock)
		layout_type_report_missing(layout, "timestamp");

	if (!layout_time_tick(layout, ts, &tick))
	{
		/* timestamptz_to_str() has one buffer. */
		char	   *given = pstrdup(timestamptz_to_str(ts));
		char	   *first = pstrdup(timestamptz_to_str(layout->spec.epoch));

		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_FIELD_OVERFLOW),
				 errmsg("timestamp %s is out of range", given),
				 errdetail("The layout \"%s\" begins at %s and ends before %s.",
						   layout->text, first,
						   timestamptz_to_str(layout_end_time(layout)))));
	}

	check_shard(layout, shard);

	if (!layout->has_sequence && slot != 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("sequence %lld is out of range", (long long) slot),
				 errdetail("The layout \"%s\" has no sequence, so it must be 0.",
						   layout->text)));
	if (slot < layout->first_number || slot > last_number)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("sequence %lld is out of range", (long long) slot),
				 errdetail("The sequence numbers of the layout \"%s\" are %lld to %lld.",
						   layout->text,
						   (long long) layout->first_number,
						   (long long) last_number),
				 errhint("Number the rows of each tick of %lld %s from %lld to %lld. If there are more, give the rest a later time%s.",
						 (long long) (layout->spec.tick_usecs < 1000 ? layout->spec.tick_usecs : layout->spec.tick_usecs / 1000),
						 layout->spec.tick_usecs < 1000 ? "us" : "ms",
						 (long long) layout->first_number,
						 (long long) last_number,
						 layout->has_shard ? " or another shard" : "")));

	id = layout_compose(layout, tick, shard, slot);
	if (id == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("cannot compose the ID 0"),
				 errdetail("IDs are positive.")));

	PG_RETURN_INT64((int64) id);
}

int64
snowflake_check_positive(int64 id)
{
	if (id < 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("ID %lld is not positive", (long long) id),
				 errdetail("Valid IDs are 1 to %lld.",
						   (long long) PG_INT64_MAX)));
	return id;
}
