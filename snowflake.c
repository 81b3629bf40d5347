/*-------------------------------------------------------------------------
 *
 * snowflake.c
 *	  The start of the module, and the SQL functions that generate IDs.
 *
 * For a new ID, the generator takes a value from a sequence, and the layout
 * makes an ID of the value and the shard.  For an ID of an old row, the time of
 * the row takes the place of the sequence.
 *
 * This file knows neither how a sequence's page is written nor where in an ID
 * a bit is.
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/pg_proc.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "windowapi.h"

#include "compat.h"

#include "arguments.h"
#include "generator.h"
#include "layout_type.h"
#include "page.h"
#include "settings.h"

/* The version of this library, whichever version the SQL script has */
#define SNOWFLAKE_VERSION	"1.0.0"

PG_MODULE_MAGIC_EXT(
					.name = "snowflake",
					.version = SNOWFLAKE_VERSION
);

PG_FUNCTION_INFO_V1(snowflake_version);
PG_FUNCTION_INFO_V1(snowflake_next_id);
PG_FUNCTION_INFO_V1(snowflake_next_id_in_copy);
PG_FUNCTION_INFO_V1(snowflake_next_ids);
PG_FUNCTION_INFO_V1(snowflake_id);
PG_FUNCTION_INFO_V1(snowflake_backdated_id);
PG_FUNCTION_INFO_V1(snowflake_backdated_id_without_zone);

PGDLLEXPORT void _PG_init(void);

void
_PG_init(void)
{
	settings_define();
	layout_type_init();
	sequence_init();
	page_init();
}

/* snowflake_version(): the version of this library */
Datum
snowflake_version(PG_FUNCTION_ARGS)
{
	(void) fcinfo;
	PG_RETURN_TEXT_P(cstring_to_text(SNOWFLAKE_VERSION));
}

/* Can IDs of the layout have this shard? */
static inline bool
has_room_for_shard(const Layout *layout, int64 shard)
{
	return shard >= 0 && shard < layout->shards;
}

/* Raise an error about a shard that IDs of the layout cannot have. */
pg_noreturn static void
report_shard(const Layout *layout, int64 shard)
{
	long long	shards = layout->shards;

	if (shards == 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("shard %lld is out of range", (long long) shard),
				 errdetail("The layout \"%s\" has no shard, so it must be 0.",
						   layout->text)));
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("shard %lld is out of range", (long long) shard),
			 errdetail("The shards of the layout \"%s\" are 0 to %lld.",
					   layout->text, shards - 1),
			 shard == SHARD_UNSET ?
			 errhint("If this is the value of \"snowflake.shard\", no shard is set: SELECT snowflake_set_shard(...) sets it. Otherwise choose a shard that no other database has. If it is computed from a key, which may be negative, use abs(key %% %lld).",
					 shards) :
			 errhint("Choose a shard that no other database has. If it is computed from a key, which may be negative, use abs(key %% %lld).",
					 shards)));
}

/*
 * Warn once in a session that a layout is about to end.  If several are, only
 * the first one that the session uses is named.
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
			 errhint("Before then, prepare another layout with shards that no old ID has, or another primary key.")));
}

/*
 * Warn once in a session that launch 0 of the layout "decimal" is for tests.
 * A launch is what takes the place of a shard in this layout.
 */
static void
warn_of_launch_0(void)
{
	static bool warned = false;

	if (warned)
		return;
	warned = true;
	ereport(WARNING,
			(errcode(ERRCODE_WARNING),
			 errmsg("launch 0 of the layout \"decimal\" is for tests"),
			 errhint("Use the number of the launch as the shard.")));
}

/*
 * Take up to *count consecutive values of a sequence, for IDs of the shard.
 * Returns the first value, and sets *count to the number taken.  "caller" is
 * the name of the SQL function, for errors.
 */
static inline int64
next_values(int64 shard, Oid sequence, const Layout *layout, int64 *count, const char *caller)
{
	SettingsLimits limits = settings_limits();
	int64		value;

	if (unlikely(!has_room_for_shard(layout, shard)))
	{
		/*
		 * The error names the layout of the sequence, so a role that may not
		 * use the sequence must be refused before.
		 *
		 * If the sequence serves no layout, layout_type_find_served() has
		 * returned one in which not even shard 0 fits.  generator_check()
		 * refuses it.
		 */
		generator_check(sequence, &layout->spec, caller);
		report_shard(layout, shard);
	}

	value = generator_next(sequence, &layout->spec, &limits, count, caller);

	if (unlikely(value >= layout->last_year_value))
		warn_of_end(layout);
	if (unlikely(shard == 0 && layout->parsed.kind == LAYOUT_DECIMAL))
		warn_of_launch_0();
	return value;
}

/*
 * Find the sequence and the layout of a call of next_id() or next_ids().  They
 * are "nargs" arguments of the call, from number "first" on: none of the two,
 * the sequence alone, or both.  A call without a sequence takes next_id_seq,
 * and a call without a layout takes the built-in one that the sequence serves.
 *
 * Returns the layout.  If the caller keeps nothing in fn_extra, then
 * layout_type_argument() may remember the layout there.
 */
static pg_attribute_always_inline const Layout *
sequence_and_layout(FunctionCallInfo fcinfo, int first, int nargs,
					bool extra_is_free, Oid *sequence)
{
	if (nargs < 1)
	{
		*sequence = sequence_default();
		return layout_type_default;
	}
	*sequence = PG_GETARG_OID(first);
	if (nargs < 2)
		return layout_type_find_served(sequence_lock_and_get_max_value(*sequence));
	return extra_is_free ? layout_type_argument(fcinfo, first + 1) :
		layout_type_find(PG_GETARG_DATUM(first + 1));
}

/*
 * Generate an ID.  The arguments of next_id() are "nargs" arguments of the
 * call, from number "first" on.  Without a shard among them, the ID gets that
 * of the setting.
 *
 * The SQL functions are not strict, because a NULL shard must raise an error
 * rather than give a NULL ID.
 */
static pg_attribute_always_inline Datum
make_id(FunctionCallInfo fcinfo, const int first, int nargs)
{
	static const char *const names[] = {"shard", "sequence", "layout"};
	int64		shard;
	Oid			sequence;
	const Layout *layout;
	int64		count = 1;
	int64		value;

	/* It is three at most, of which static analysis knows nothing. */
	for (int i = 0; i < Min(nargs, (int) lengthof(names)); i++)
		if (unlikely(PG_ARGISNULL(first + i)))
			arguments_refuse_null(names[i], NULL);

	shard = nargs > 0 ? PG_GETARG_INT64(first) : settings_get_shard();

	/* snowflake_next_id_in_copy() keeps something else in fn_extra. */
	layout = sequence_and_layout(fcinfo, first + 1, nargs - 1, first == 0, &sequence);
	value = next_values(shard, sequence, layout, &count, "next_id()");
	PG_RETURN_INT64((int64) layout_id(layout, value, shard));
}

/* next_id([shard [, sequence [, layout]]]) */
Datum
snowflake_next_id(PG_FUNCTION_ARGS)
{
	return make_id(fcinfo, 0, PG_NARGS());
}

/* The state of a call of next_ids() */
typedef struct NextIds
{
	int64		shard;
	Oid			sequence;
	const Layout *layout;
	int64		wanted;			/* number of values still to be taken */
	int64		value;			/* the next value to return, if count > 0 */
	int64		count;			/* number of values that have been taken and
								 * not yet returned */
} NextIds;

/*
 * The most values that next_ids() takes at a time.  The larger a batch, the
 * more of max_lead a call takes from others, who wait for the clock then, and
 * the more a caller wastes who reads only a few rows, as with LIMIT.
 */
#define NEXT_IDS_BATCH		1024

/* next_ids(shard, count [, sequence [, layout]]) */
Datum
snowflake_next_ids(PG_FUNCTION_ARGS)
{
	FuncCallContext *funcctx;
	NextIds    *ids;

	if (SRF_IS_FIRSTCALL())
	{
		static const char *const names[] = {"shard", "count", "sequence", "layout"};
		int64		count;

		for (int i = 0; i < PG_NARGS(); i++)
			if (PG_ARGISNULL(i))
				arguments_refuse_null(names[i], NULL);
		count = PG_GETARG_INT64(1);
		if (count < 1)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("count %lld is out of range", (long long) count),
					 errhint("Request at least one ID.")));

		funcctx = SRF_FIRSTCALL_INIT();
		ids = MemoryContextAllocZero(funcctx->multi_call_memory_ctx,
									 sizeof(NextIds));
		ids->shard = PG_GETARG_INT64(0);
		/* SRF_FIRSTCALL_INIT() uses fn_extra. */
		ids->layout = sequence_and_layout(fcinfo, 2, PG_NARGS() - 2, false, &ids->sequence);
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
								 &ids->count, "next_ids()");
		ids->wanted -= ids->count;
	}

	ids->count--;
	SRF_RETURN_NEXT(funcctx,
					Int64GetDatum((int64) layout_id(ids->layout, ids->value++, ids->shard)));
}

/*
 * snowflake_next_id_in_copy(NULL, next_id, shard, sequence, layout) takes the
 * place of a call of next_id() in COPY.  planner.c says why, and what the
 * first argument is.  The second one is the OID of the next_id() that it
 * replaces.  The number of that function's arguments says how many of shard,
 * sequence and layout were given.  The rest are NULL and not looked at.
 */
Datum
snowflake_next_id_in_copy(PG_FUNCTION_ARGS)
{
	FmgrInfo   *flinfo = fcinfo->flinfo;
	int		   *nargs = flinfo->fn_extra;

	/*
	 * As PostgreSQL does for other functions, check the role's right once for
	 * each place in an expression that calls this function, not for each row.
	 */
	if (unlikely(nargs == NULL))
	{
		Oid			replaced = PG_GETARG_OID(1);
		HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(replaced));

		/* No lock keeps the function from being dropped meanwhile. */
		if (!HeapTupleIsValid(tuple))
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_FUNCTION),
					 errmsg("function with OID %u does not exist", replaced)));
		if (pg_proc_aclcheck(replaced, GetUserId(), ACL_EXECUTE) != ACLCHECK_OK)
			aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_FUNCTION, "next_id");
		nargs = MemoryContextAlloc(flinfo->fn_mcxt, sizeof(int));
		*nargs = ((Form_pg_proc) GETSTRUCT(tuple))->pronargs;
		flinfo->fn_extra = nargs;
		ReleaseSysCache(tuple);
	}
	return make_id(fcinfo, 2, *nargs);
}

/* Raise an error about a time that no ID of the layout can have. */
pg_noreturn static void
report_time(const Layout *layout, TimestampTz ts)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATETIME_FIELD_OVERFLOW),
			 errmsg("timestamp %s is out of range", arguments_time_string(ts)),
			 errdetail("The layout \"%s\" begins at %s and ends before %s.",
					   layout->text, arguments_time_string(layout->spec.epoch),
					   arguments_time_string(layout_end_time(layout)))));
}

/* The last sequence number that IDs of the layout can have */
static inline int64
last_sequence_number(const Layout *layout)
{
	return layout->first_number + layout->spec.slots - 1;
}

/* Raise an error about a sequence number that IDs of the layout cannot have. */
pg_noreturn static void
report_sequence_number(const Layout *layout, int64 number)
{
	long long	first = layout->first_number;
	long long	last = last_sequence_number(layout);
	long long	tick_usecs = layout->spec.tick_usecs;

	if (layout->spec.slots == 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("sequence number %lld is out of range", (long long) number),
				 errdetail("The layout \"%s\" has no sequence, so it must be 0.",
						   layout->text)));
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("sequence number %lld is out of range", (long long) number),
			 errdetail("The sequence numbers of the layout \"%s\" are %lld to %lld.",
					   layout->text, first, last),
			 errhint("Number the rows of each tick of %s from %lld to %lld. If there are more, give the rest a later time%s.",
					 tick_usecs < 1000 ?
					 psprintf("%lld us", tick_usecs) :
					 psprintf("%lld ms", tick_usecs / 1000),
					 first, last,
					 layout->shards > 1 ? " or another shard" : "")));
}

/* snowflake_id(ts, shard, sequence_number [, layout]): compose an ID */
Datum
snowflake_id(PG_FUNCTION_ARGS)
{
	TimestampTz ts = PG_GETARG_TIMESTAMPTZ(0);
	int64		shard = PG_GETARG_INT64(1);
	int64		number = PG_GETARG_INT64(2);
	const Layout *layout = layout_type_argument(fcinfo, 3);
	int64		tick;
	uint64		id;

	if (!layout->has_clock)
		layout_type_report_missing(layout, "timestamp");

	if (!layout_time_tick(layout, ts, &tick))
		report_time(layout, ts);

	if (!has_room_for_shard(layout, shard))
		report_shard(layout, shard);

	if (number < layout->first_number || number > last_sequence_number(layout))
		report_sequence_number(layout, number);

	id = layout_id(layout,
				   tick * layout->spec.slots + number - layout->first_number,
				   shard);
	if (id == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("cannot compose the ID 0"),
				 errdetail("IDs are positive.")));
	PG_RETURN_INT64((int64) id);
}

/* What a window partition has got from snowflake_backdated_id() */
typedef struct Backdated
{
	const Layout *layout;		/* NULL before the first ID */
	int64		value;			/* the last one, as of a sequence: tick *
								 * slots + slot */
} Backdated;

/*
 * snowflake_backdated_id(ts, shard [, layout]): an ID at or after a time, made
 * of a value larger than those of all earlier rows of the window partition
 *
 * Values are taken as from a sequence whose clock is the time of the row: the
 * next value is the last one plus one, moved up to the first value of the
 * time's tick (where the generator would keep the slot).  So no value comes
 * twice, whatever the order of the rows and however many of them share a tick,
 * and IDs of several shards differ, too.  Value 0 is not taken, as the ID 0 is
 * none.
 */
Datum
snowflake_backdated_id(PG_FUNCTION_ARGS)
{
	WindowObject winobj = PG_WINDOW_OBJECT();
	Backdated  *last = WinGetPartitionLocalMemory(winobj, sizeof(Backdated));
	const Layout *layout = layout_type_default;
	bool		is_null;
	TimestampTz ts;
	int64		shard;
	int64		tick;

	/* A window function does not find its arguments in fcinfo. */
	if (PG_NARGS() > 2)
	{
		Datum		value = WinGetFuncArgCurrent(winobj, 2, &is_null);

		if (is_null)
			arguments_refuse_null("layout", NULL);
		layout = layout_type_find(value);
	}
	shard = DatumGetInt64(WinGetFuncArgCurrent(winobj, 1, &is_null));
	if (is_null)
		arguments_refuse_null("shard", NULL);
	ts = DatumGetTimestampTz(WinGetFuncArgCurrent(winobj, 0, &is_null));
	if (is_null)
		PG_RETURN_NULL();

	layout_type_require_time(layout);
	if (last->layout != NULL && last->layout != layout)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("layout \"%s\" follows layout \"%s\" in a window partition",
						layout->text, last->layout->text),
				 errhint("Use PARTITION BY to give each layout its own partition.")));
	if (!layout_time_tick(layout, ts, &tick))
		report_time(layout, ts);
	if (!has_room_for_shard(layout, shard))
		report_shard(layout, shard);

	last->layout = layout;
	last->value = Max(last->value + 1, tick * layout->spec.slots);
	if (last->value > layout->spec.max_value)
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_FIELD_OVERFLOW),
				 errmsg("no ID is left for timestamp %s", arguments_time_string(ts)),
				 errdetail("Earlier rows of the window partition have taken all IDs up to the last one of layout \"%s\".",
						   layout->text)));
	PG_RETURN_INT64((int64) layout_id(layout, last->value, shard));
}

/* The same for a timestamp without time zone, only to refuse it */
Datum
snowflake_backdated_id_without_zone(PG_FUNCTION_ARGS)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATATYPE_MISMATCH),
			 errmsg("%s needs a timestamp with time zone",
					"snowflake_backdated_id()"),
			 errhint("Specify the time zone of these times, for example with created_at AT TIME ZONE 'UTC'.")));
	PG_RETURN_NULL();
}
