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

#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "funcapi.h"
#include "generator.h"
#include "layout.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "compat.h"

PG_MODULE_MAGIC_EXT(
					.name = "snowflake",
					.version = "1.0"
);

PG_FUNCTION_INFO_V1(snowflake_next_id);
PG_FUNCTION_INFO_V1(snowflake_next_id_setting);
PG_FUNCTION_INFO_V1(snowflake_timestamp);
PG_FUNCTION_INFO_V1(snowflake_shard);
PG_FUNCTION_INFO_V1(snowflake_sequence);
PG_FUNCTION_INFO_V1(snowflake_fields);
PG_FUNCTION_INFO_V1(snowflake_min_id);
PG_FUNCTION_INFO_V1(snowflake_max_id);
PG_FUNCTION_INFO_V1(snowflake_id);
PG_FUNCTION_INFO_V1(snowflake_status);

void		_PG_init(void);

/* Settings.  Milliseconds, as far as they are times. */
#define SHARD_UNSET			(-1)
#define MAX_LEAD_LIMIT		(100.0 * DAYS_PER_YEAR * SECS_PER_DAY * 1000.0)

static int	shard_setting = SHARD_UNSET;
static double max_lead_setting = 1000.0;
static int	max_wait_setting = 5000;
static bool settings_defined = false;

/* The layout, and what it asks of a sequence. */
static Layout layout;
static TickSpec tick_spec;

/* TimestampTz counts from 2000-01-01, layouts count from 1970-01-01. */
#define UNIX_EPOCH_OFFSET \
	((POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY)


static TimestampTz
tick_timestamp(int64 tick)
{
	return layout_tick_time(&layout, tick) - UNIX_EPOCH_OFFSET;
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
							SHARD_UNSET, SHARD_UNSET, INT_MAX,
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
							"A longer wait is an error, and is not begun if it is certain to be longer.",
							&max_wait_setting,
							5000, 0, INT_MAX,
							PGC_USERSET, GUC_UNIT_MS,
							NULL, NULL, NULL);

	MarkGUCPrefixReserved("snowflake");
}

void
_PG_init(void)
{
	define_settings();

	layout_instagram(&layout);
	tick_spec.epoch = tick_timestamp(0);
	tick_spec.tick = layout.tick;
	tick_spec.slots = layout.slots;
	tick_spec.max_value = layout_max_value(&layout);
	tick_spec.any_bigint = true;

	generator_init();
}

/*
 * Unix microseconds.  The ends of the scale, which are the infinities, stay
 * where they are.
 */
static int64
timestamp_to_unix(TimestampTz time)
{
	if (TIMESTAMP_IS_NOBEGIN(time) || time > PG_INT64_MAX - UNIX_EPOCH_OFFSET)
		return time;
	return time + UNIX_EPOCH_OFFSET;
}

/*
 * The first moment for which the layout has no ID.
 */
static TimestampTz
end_of_time(void)
{
	return tick_timestamp(layout.end_tick);
}

static void
check_shard(int64 shard)
{
	if (shard < 0 || shard >= layout.shards)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("shard %lld is out of range", (long long) shard),
				 errdetail("The shards of the layout \"%s\" are 0 to %lld.",
						   layout.name, (long long) layout.shards - 1),
				 errhint("To spread rows over all shards, use a key modulo %lld.",
						 (long long) layout.shards)));
}

static Datum
next_id(int64 shard, Oid sequence)
{
	TickLimits	limits;
	int64		value;

	check_shard(shard);

	limits.max_lead = (int64) (max_lead_setting * 1000.0);
	limits.max_wait = max_wait_setting * INT64CONST(1000);

	value = generator_next(sequence, &tick_spec, &limits);

	PG_RETURN_INT64((int64) layout_compose(&layout, value / layout.slots,
										   shard, value % layout.slots));
}

/*
 * next_id(shard, sequence)
 *
 * Not strict: a NULL shard must not become a NULL ID.
 */
Datum
snowflake_next_id(PG_FUNCTION_ARGS)
{
	define_settings();

	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("shard must not be null")));
	if (PG_ARGISNULL(1))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("sequence must not be null")));

	return next_id(PG_GETARG_INT64(0), PG_GETARG_OID(1));
}

/*
 * The sequence that came with next_id(): in the function's own schema,
 * wherever the search path points, and a member of the extension, whoever
 * else may use the name.
 */
static Oid
default_sequence(Oid function)
{
	Oid			schema = get_func_namespace(function);
	Oid			sequence = get_relname_relid("next_id_seq", schema);

	if (!OidIsValid(sequence) || !generator_owns(sequence))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("sequence %s of the extension does not exist",
						quote_qualified_identifier(get_namespace_name(schema),
												   "next_id_seq")),
				 errhint("Give next_id() its sequence as the second argument.")));

	return sequence;
}

/*
 * next_id()
 */
Datum
snowflake_next_id_setting(PG_FUNCTION_ARGS)
{
	FmgrInfo   *flinfo = fcinfo->flinfo;
	Oid		   *sequence = flinfo->fn_extra;

	define_settings();

	if (shard_setting == SHARD_UNSET)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("\"snowflake.shard\" is not set"),
				 errhint("Set it for this server or database with ALTER SYSTEM or ALTER DATABASE, or give the shard as an argument: next_id(5).")));

	/* Once for each place where a query calls the function. */
	if (sequence == NULL)
	{
		sequence = MemoryContextAlloc(flinfo->fn_mcxt, sizeof(Oid));
		*sequence = default_sequence(flinfo->fn_oid);
		flinfo->fn_extra = sequence;
	}

	return next_id(shard_setting, *sequence);
}

Datum
snowflake_timestamp(PG_FUNCTION_ARGS)
{
	uint64		id = (uint64) PG_GETARG_INT64(0);

	PG_RETURN_TIMESTAMPTZ(tick_timestamp(layout_tick(&layout, id)));
}

Datum
snowflake_shard(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32((int32) layout_shard(&layout, (uint64) PG_GETARG_INT64(0)));
}

Datum
snowflake_sequence(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32((int32) layout_slot(&layout, (uint64) PG_GETARG_INT64(0)));
}

/*
 * The fields of an ID as they stand in it, most significant first.
 */
Datum
snowflake_fields(PG_FUNCTION_ARGS)
{
	uint64		id = (uint64) PG_GETARG_INT64(0);
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;

	InitMaterializedSRF(fcinfo, 0);

	for (int i = 0; i < layout.nfields; i++)
	{
		Datum		values[2];
		bool		nulls[2] = {false, false};

		values[0] = CStringGetTextDatum(layout.fields[i].name);
		values[1] = Int64GetDatum(layout_field(&layout, id, i));
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}

	return (Datum) 0;
}

Datum
snowflake_min_id(PG_FUNCTION_ARGS)
{
	int64		time = timestamp_to_unix(PG_GETARG_TIMESTAMPTZ(0));

	PG_RETURN_INT64(layout_min_id(&layout, time));
}

Datum
snowflake_max_id(PG_FUNCTION_ARGS)
{
	int64		time = timestamp_to_unix(PG_GETARG_TIMESTAMPTZ(0));

	PG_RETURN_INT64(layout_max_id(&layout, time));
}

/*
 * Compose an ID from its parts.
 */
Datum
snowflake_id(PG_FUNCTION_ARGS)
{
	TimestampTz time = PG_GETARG_TIMESTAMPTZ(0);
	int64		shard = PG_GETARG_INT64(1);
	int64		slot = PG_GETARG_INT64(2);
	int64		tick;
	uint64		id;

	if (!layout_time_tick(&layout, timestamp_to_unix(time), &tick))
	{
		/* timestamptz_to_str() has one buffer. */
		char	   *given = pstrdup(timestamptz_to_str(time));
		char	   *first = pstrdup(timestamptz_to_str(tick_spec.epoch));

		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_FIELD_OVERFLOW),
				 errmsg("timestamp %s is out of range", given),
				 errdetail("The layout \"%s\" begins at %s and ends before %s.",
						   layout.name, first,
						   timestamptz_to_str(end_of_time()))));
	}

	check_shard(shard);

	if (slot < 0 || slot >= layout.slots)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("sequence %lld is out of range", (long long) slot),
				 errdetail("The sequence numbers of the layout \"%s\" are 0 to %lld.",
						   layout.name, (long long) layout.slots - 1)));

	id = layout_compose(&layout, tick, shard, slot);
	if (id == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("cannot compose the ID 0"),
				 errdetail("IDs are positive.")));

	PG_RETURN_INT64((int64) id);
}

/*
 * How a sequence stands: the last ID's time, how far that is ahead of the
 * clock, how far the WAL covers use of the sequence beyond it, and the end.
 */
Datum
snowflake_status(PG_FUNCTION_ARGS)
{
	TickStatus	status;
	TupleDesc	tupdesc;
	Datum		values[4];
	bool		nulls[4] = {false, false, false, false};

	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");

	generator_status(PG_GETARG_OID(0), &tick_spec, &status);

	if (status.called)
	{
		int64		tick = status.value / layout.slots;
		int64		logged = status.logged / layout.slots;
		TimestampTz last = tick_timestamp(tick);
		Interval   *lead = palloc0(sizeof(Interval));
		Interval   *ahead = palloc0(sizeof(Interval));

		lead->time = Max(last - GetCurrentTimestamp(), 0);
		ahead->time = (logged - tick) * layout.tick;

		values[0] = TimestampTzGetDatum(last);
		values[1] = IntervalPGetDatum(lead);
		values[2] = IntervalPGetDatum(ahead);
	}
	else
		nulls[0] = nulls[1] = nulls[2] = true;

	values[3] = TimestampTzGetDatum(end_of_time());

	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(tupdesc),
													  values, nulls)));
}
