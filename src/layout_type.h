/*-------------------------------------------------------------------------
 *
 * layout_type.h
 *	  The type snowflake_layout, and the layouts that this session has used.
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_LAYOUT_TYPE_H
#define SNOWFLAKE_LAYOUT_TYPE_H

#include "fmgr.h"
#include "layout.h"

#pragma GCC visibility push(hidden)
extern const Layout *layout_type_default;

extern void layout_type_init(void);
extern const Layout *layout_type_find(Datum value);
extern const Layout *layout_type_look_up(FunctionCallInfo fcinfo, int argument);
extern const Layout *layout_type_find_served(int64 max_value);
pg_noreturn extern void layout_type_report_missing(const Layout *layout, const char *field);
extern void layout_type_require_time(const Layout *layout);
#pragma GCC visibility pop

/*
 * The layout that is an argument of a call, or the default one if the function
 * has no such argument.
 *
 * If fn_extra is set, it is the layout: layout_type_look_up() sets it if the
 * argument is a constant.  So a function that calls this with an argument that
 * is a layout must not use fn_extra for anything else.
 */
static inline const Layout *
layout_type_argument(FunctionCallInfo fcinfo, int argument)
{
	if (PG_NARGS() <= argument)
		return layout_type_default;
	if (likely(fcinfo->flinfo->fn_extra != NULL))
		return fcinfo->flinfo->fn_extra;
	return layout_type_look_up(fcinfo, argument);
}

#endif							/* SNOWFLAKE_LAYOUT_TYPE_H */
