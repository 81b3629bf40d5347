/*-------------------------------------------------------------------------
 *
 * layout.h
 *	  Which bits of an ID mean what.
 *
 * There are four views of a layout, each made from the one before:
 *
 *	- a text, which is a name or a definition
 *	- a ParsedLayout (definition.h), which is what the text says
 *	- a Layout, which has all that is needed to compose IDs and to read them
 *	- a GeneratorSpec, the part of the Layout that the generator is told
 *
 * If a function returns false, its caller raises the error.
 *
 * Times are microseconds since 2000-01-01 00:00:00 UTC, as in a timestamptz,
 * except for the epoch of a ParsedLayout.
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_LAYOUT_H
#define SNOWFLAKE_LAYOUT_H

#include "datatype/timestamp.h"

#include "definition.h"

/*
 * What the generator is told of a layout.
 *
 * A sequence serves the specs whose max_value is its MAXVALUE, which its owner
 * chooses.  Each built-in layout has its own max_value.  Custom layouts
 * may share one, although their epochs differ, and a call with a wrong epoch
 * could push the sequence years ahead.  So taking values for a custom layout
 * needs UPDATE on the sequence.
 */
typedef struct GeneratorSpec
{
	TimestampTz epoch;			/* when tick 0 began */
	int64		tick_usecs;		/* microseconds in a tick; 0 without a clock */
	int64		slots;			/* values per tick; 1 without a sequence
								 * number */
	int64		last_tick;
	int64		max_value;		/* the last value, and the MAXVALUE of the
								 * spec's sequences; may be some values before
								 * the end of last_tick */
	bool		is_default;		/* is this the spec of next_id_seq? */
	bool		needs_update;	/* does taking values need UPDATE? */
	const char *layout;			/* the layout's text, or NULL if the spec
								 * stands for no layout: see
								 * layout_type_find_served() */
} GeneratorSpec;

/*
 * A field of an ID.  "bits" and "shift" are of fields that are bits, "count"
 * is of those that are decimal digits.
 */
typedef struct LayoutField
{
	char		name[LAYOUT_NAME_LENGTH + 1];
	LayoutRole	role;
	int			bits;
	int			shift;			/* number of bits to the right of the field */
	uint64		unit;			/* an ID grows by this if the field does
								 * by 1 */
	uint64		count;			/* number of values that the field can have */
} LayoutField;

/* A definition, and all that follows from it */
typedef struct Layout
{
	char		text[LAYOUT_TEXT_SIZE]; /* name or definition, as printed.  It
										 * comes first, because it is the key
										 * of a table of layouts. */
	ParsedLayout parsed;
	GeneratorSpec spec;
	int64		last_year_value;	/* where the layout's last year begins, or
									 * PG_INT64_MAX if IDs tell no time */

	bool		has_clock;		/* do ticks follow the clock? */
	bool		has_time;		/* does an ID tell its time? */

	uint64		last_decodable; /* the last tick that a timestamptz can hold */
	int			slot_bits;		/* logarithm of spec.slots, or -1 if that is
								 * no power of two */
	int64		first_number;	/* sequence number of slot 0: 0 or 1 */
	int64		shards;			/* values of all shard fields together; 1 if
								 * there is none */

	uint64		tick_mask;		/* bits of a tick that are in the ID: all,
								 * unless the timestamp wraps around */
	uint64		tick_unit;		/* an ID grows by this if the tick does by 1 */
	uint64		number_unit;	/* the same for the sequence number */
	uint64		shard_unit;		/* the same for the shard, or 0 if it has no
								 * field or several */
	int			nfields;
	LayoutField fields[LAYOUT_MAX_FIELDS];	/* most significant first */
} Layout;

#pragma GCC visibility push(hidden)
extern bool layout_parse(const char *string, ParsedLayout *parsed, LayoutError *error);
extern void layout_print(const ParsedLayout *parsed, char *string);
extern void layout_init(Layout *layout, const ParsedLayout *parsed);

extern const char *layout_get_builtin(int index, ParsedLayout *parsed);
extern const char *layout_of_max_value(int64 max_value);

extern uint64 layout_id(const Layout *layout, int64 value, int64 shard);
extern int64 layout_field(const Layout *layout, uint64 id, int index);
extern uint64 layout_tick(const Layout *layout, uint64 id);
extern int64 layout_shard(const Layout *layout, uint64 id);
extern int64 layout_number(const Layout *layout, uint64 id);

extern bool layout_tick_time(const Layout *layout, uint64 tick, int64 *ts);
extern bool layout_time_tick(const Layout *layout, int64 ts, int64 *tick);
extern int64 layout_min_id(const Layout *layout, int64 ts);
extern int64 layout_max_id(const Layout *layout, int64 ts);
#pragma GCC visibility pop

/*
 * The first moment after the layout's IDs.  This is for layouts with a clock.
 */
static inline TimestampTz
layout_end_time(const Layout *layout)
{
	return layout->spec.epoch +
		(layout->spec.last_tick + 1) * layout->spec.tick_usecs;
}

#endif							/* SNOWFLAKE_LAYOUT_H */
