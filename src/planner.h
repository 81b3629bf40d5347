/*-------------------------------------------------------------------------
 *
 * planner.h
 *	  What the planner is told of next_id() and next_ids().
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_PLANNER_H
#define SNOWFLAKE_PLANNER_H

#pragma GCC visibility push(hidden)
extern Oid	planner_find_counterpart(Oid function, const char *name);
#pragma GCC visibility pop

#endif							/* SNOWFLAKE_PLANNER_H */
