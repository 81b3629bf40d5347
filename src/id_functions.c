/*-------------------------------------------------------------------------
 *
 * id_functions.c
 *	  SQL functions that read IDs, and that bound the IDs of a time.
 *
 * This file knows neither sequences nor where in an ID a bit is.
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "compat.h"

#include "layout_type.h"

PG_FUNCTION_INFO_V1(snowflake_timestamp);
PG_FUNCTION_INFO_V1(snowflake_shard);
PG_FUNCTION_INFO_V1(snowflake_sequence_number);
PG_FUNCTION_INFO_V1(snowflake_fields);
PG_FUNCTION_INFO_V1(snowflake_min_id);
PG_FUNCTION_INFO_V1(snowflake_max_id);

/* snowflake_timestamp(id [, layout]): the time at which an ID was generated */
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

/* snowflake_shard(id [, layout]): the shard for which an ID was generated */
Datum
snowflake_shard(PG_FUNCTION_ARGS)
{
	const Layout *layout = layout_type_argument(fcinfo, 1);

	if (layout->shards == 1)
		layout_type_report_missing(layout, "shard");
	PG_RETURN_INT32((int32) layout_shard(layout, (uint64) PG_GETARG_INT64(0)));
}

/* snowflake_sequence_number(id [, layout]): an ID's number within its tick */
Datum
snowflake_sequence_number(PG_FUNCTION_ARGS)
{
	const Layout *layout = layout_type_argument(fcinfo, 1);

	if (layout->spec.slots == 1)
		layout_type_report_missing(layout, "sequence");
	PG_RETURN_INT32((int32) layout_number(layout, (uint64) PG_GETARG_INT64(0)));
}

/* snowflake_fields(id [, layout]): each field's name and value */
Datum
snowflake_fields(PG_FUNCTION_ARGS)
{
	uint64		id = (uint64) PG_GETARG_INT64(0);
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	const Layout *layout = layout_type_argument(fcinfo, 1);

	InitMaterializedSRF(fcinfo, 0);

	for (int i = 0; i < layout->nfields; i++)
	{
		Datum		values[] = {
			CStringGetTextDatum(layout->fields[i].name),
			Int64GetDatum(layout_field(layout, id, i))
		};
		bool		nulls[] = {false, false};

		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}

	return (Datum) 0;
}

/* snowflake_min_id(ts [, layout]): IDs of "ts" or later, and only they, are >= this */
Datum
snowflake_min_id(PG_FUNCTION_ARGS)
{
	const Layout *layout = layout_type_argument(fcinfo, 1);

	layout_type_require_time(layout);
	PG_RETURN_INT64(layout_min_id(layout, PG_GETARG_TIMESTAMPTZ(0)));
}

/* snowflake_max_id(ts [, layout]): IDs of "ts" or earlier, and only they, are <= this */
Datum
snowflake_max_id(PG_FUNCTION_ARGS)
{
	const Layout *layout = layout_type_argument(fcinfo, 1);

	layout_type_require_time(layout);
	PG_RETURN_INT64(layout_max_id(layout, PG_GETARG_TIMESTAMPTZ(0)));
}
