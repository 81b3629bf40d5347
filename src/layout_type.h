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
extern const LayoutCache *instagram;

extern void layout_type_init(void);
extern const LayoutCache *get_layout(Datum value, MemoryContext context);
extern const LayoutCache *look_up_layout(FunctionCallInfo fcinfo,
										 int argument);
extern const LayoutCache *layout_served(int64 max_value);
extern char *layout_text(const Layout *layout);
pg_noreturn extern void report_missing_field(const Layout *layout,
											 const char *field);
extern void require_time(const Layout *layout);
#pragma GCC visibility pop

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
 * The first moment for which the layout has no ID.
 */
static inline TimestampTz
end_of_time(const Layout *layout)
{
	return layout->epoch + layout->end_tick * layout->tick;
}

#endif							/* SNOWFLAKE_LAYOUT_TYPE_H */
