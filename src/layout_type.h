/*-------------------------------------------------------------------------
 *
 * layout_type.h
 *	  The type snowflake_layout, and the layouts that this session has used.
 *
 * Include it after compat.h.
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_LAYOUT_TYPE_H
#define SNOWFLAKE_LAYOUT_TYPE_H

#include "fmgr.h"
#include "layout.h"
#include "sequence.h"

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

#pragma GCC visibility push(hidden)
extern const LayoutCache *layout_type_default;

extern void layout_type_init(void);
extern const LayoutCache *layout_type_get(Datum value, MemoryContext context);
extern const LayoutCache *layout_type_look_up(FunctionCallInfo fcinfo,
										 int argument);
extern const LayoutCache *layout_type_served(int64 max_value);
extern char *layout_type_text(const Layout *layout);
pg_noreturn extern void layout_type_report_missing(const Layout *layout,
											 const char *field);
extern void layout_type_require_time(const Layout *layout);
#pragma GCC visibility pop

/*
 * The layout that a call was given as an argument, or the default one if the
 * function has no such argument.
 */
static inline const LayoutCache *
layout_type_argument(FunctionCallInfo fcinfo, int argument)
{
	if (PG_NARGS() <= argument)
		return layout_type_default;
	if (likely(fcinfo->flinfo->fn_extra != NULL))
		return fcinfo->flinfo->fn_extra;
	return layout_type_look_up(fcinfo, argument);
}

/*
 * The first moment for which the layout has no ID.
 */
static inline TimestampTz
layout_end_time(const Layout *layout)
{
	return layout->epoch + layout->end_tick * layout->tick;
}

#endif							/* SNOWFLAKE_LAYOUT_TYPE_H */
