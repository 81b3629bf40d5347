/*-------------------------------------------------------------------------
 *
 * layout.h
 *	  The bits of an ID: which field stands where, and what it means.
 *
 * A layout is a plain description.  The functions here are pure: they read
 * no setting, no clock and no catalog, and they raise no error; callers turn
 * a false return into a message.  Nothing here knows where ticks and slots
 * come from.
 *
 * Times are microseconds since 1970-01-01 00:00:00 UTC.
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_LAYOUT_H
#define SNOWFLAKE_LAYOUT_H

#define LAYOUT_MAX_FIELDS	8
#define LAYOUT_NAME_SIZE	16	/* 15 characters and the terminator */

typedef enum LayoutRole
{
	LAYOUT_TIMESTAMP,			/* ticks since the layout's epoch */
	LAYOUT_SHARD,				/* (a part of) the shard number */
	LAYOUT_SEQUENCE				/* slot within a tick */
} LayoutRole;

typedef struct LayoutField
{
	char		name[LAYOUT_NAME_SIZE];
	LayoutRole	role;
	int			bits;
	int			shift;			/* set by layout_finish() */
} LayoutField;

typedef struct Layout
{
	char		name[LAYOUT_NAME_SIZE];
	int64		epoch;			/* time of tick 0 */
	int64		tick;			/* length of a tick in microseconds */
	int			nfields;
	LayoutField fields[LAYOUT_MAX_FIELDS];	/* most significant first */

	/* What follows is derived from the above by layout_finish(). */
	int			timestamp_shift;
	int			sequence_shift;
	int64		end_tick;		/* last tick of the field; never issued */
	int64		slots;			/* values of the sequence field */
	int64		shards;			/* values of all shard fields together */
} Layout;

/*
 * The last value of a sequence that drives the layout: the last slot of the
 * last tick that is issued.
 */
static inline int64
layout_max_value(const Layout *layout)
{
	return layout->end_tick * layout->slots - 1;
}

extern void layout_finish(Layout *layout);
extern void layout_instagram(Layout *layout);

extern uint64 layout_compose(const Layout *layout, int64 tick, int64 shard,
							 int64 slot);
extern int64 layout_field(const Layout *layout, uint64 id, int field);
extern int64 layout_tick(const Layout *layout, uint64 id);
extern int64 layout_shard(const Layout *layout, uint64 id);
extern int64 layout_slot(const Layout *layout, uint64 id);

extern int64 layout_tick_time(const Layout *layout, int64 tick);
extern bool layout_time_tick(const Layout *layout, int64 time, int64 *tick);
extern int64 layout_min_id(const Layout *layout, int64 time);
extern int64 layout_max_id(const Layout *layout, int64 time);

#endif							/* SNOWFLAKE_LAYOUT_H */
