/*-------------------------------------------------------------------------
 *
 * interval.h
 *	  Microseconds as an interval.
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_INTERVAL_H
#define SNOWFLAKE_INTERVAL_H

#include "utils/timestamp.h"

/*
 * So many microseconds as an interval without days or months.
 */
static inline Datum
interval_datum(int64 usecs)
{
	Interval   *interval = palloc0(sizeof(Interval));

	interval->time = usecs;
	return IntervalPGetDatum(interval);
}

#endif							/* SNOWFLAKE_INTERVAL_H */
