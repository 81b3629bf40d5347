/*-------------------------------------------------------------------------
 *
 * layout.c
 *	  Which bits of an ID mean what: the built-in layouts, composing IDs,
 *	  taking them apart, and finding the IDs of a time.
 *
 * Results depend on the arguments alone.  The functions read no clock,
 * sequence or setting, and do not report errors.  So this file and
 * definition.c can be built and fuzzed without a server.  Its only state is
 * the table of the built-in layouts, which is filled at the first use.
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#ifndef FRONTEND
#include "postgres.h"
#else
#include "postgres_fe.h"
#endif

#include "datatype/timestamp.h"
#include "layout.h"
#include "port/pg_bitutils.h"

/*
 * Microseconds from 1970-01-01, from which definitions count, to 2000-01-01,
 * from which all other times count.
 */
#define UNIX_EPOCH_OFFSET \
	((POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY)

/*
 * An ID of the layout "decimal" is made of decimal digits.  The last five are
 * the number of a "launch", which is one start of a program that generates
 * IDs, and take the place of a shard.  The five before them are the number of
 * a "generator", and the others are a counter.  The largest counter is the
 * largest for which all launches and generators fit into a bigint: 2^63 /
 * 10^10, rounded down, less one.
 */
#define DECIMAL_LAUNCHES	100000
#define DECIMAL_GENERATORS	100000
#define DECIMAL_COUNTERS	922337202

/* The counter 0 is never made, but it can be read. */
static const LayoutField decimal_fields[] = {
	{.name = "counter", .role = LAYOUT_SEQUENCE, .count = DECIMAL_COUNTERS + 1,
	.unit = UINT64CONST(1) * DECIMAL_LAUNCHES * DECIMAL_GENERATORS},
	{.name = "generator", .role = LAYOUT_TICK, .count = DECIMAL_GENERATORS,
	.unit = DECIMAL_LAUNCHES},
	{.name = "launch", .role = LAYOUT_SHARD, .count = DECIMAL_LAUNCHES, .unit = 1}
};

/*
 * The built-in layouts; the first is the default.
 *
 * A sequence's MAXVALUE shows which layout it serves.  It is the last value
 * for which the layout has room, less the layout's reserved values.  No
 * sequence takes these.  They give layouts that have the same room different
 * MAXVALUEs.
 *
 * Names and reserved values must never change, because sequences and values of
 * type snowflake_layout depend on them.
 *
 * Layouts of later versions follow those of version 1.0.  Users may already
 * have a custom layout with the same definition, whose text and MAXVALUE must
 * not change.  So only the name of such a layout means it.
 */
static const struct
{
	const char *name;
	LayoutKind	kind;
	int			reserved_values;
	const char *definition;
}			builtins[] = {
	{"instagram", LAYOUT_BITS, 0, "timestamp:41 shard:13 sequence:10 epoch:1314220021721"},
	{"twitter", LAYOUT_BITS, 0, "timestamp:41 datacenter:5 worker:5 sequence:12 epoch:1288834974657"},
	{"discord", LAYOUT_BITS, 1, "timestamp:42 worker:5 process:5 sequence:12 epoch:1420070400000"},
	{"shardingsphere", LAYOUT_BITS, 2, "timestamp:41 worker:10 sequence:12 epoch:1477958400000"},
	{"sonyflake", LAYOUT_BITS, 0, "timestamp:39 sequence:8 machine:16 epoch:1409529600000 tick:10ms"},
	{"mastodon", LAYOUT_BITS, 0, "timestamp:48 sequence:16 epoch:0"},
	{"pgedge", LAYOUT_BITS, 3, "timestamp:41 node:10 sequence:12 epoch:1672531200000"},
	{"javascript", LAYOUT_BITS, 0, "timestamp:41 shard:5 sequence:7 epoch:1577836800000"},
	{"trace", LAYOUT_TRACE, 0, "timestamp:25 node:16 chunk:12 sequence:10 epoch:0 tick:1s"},
	{"decimal", LAYOUT_DECIMAL, 0, NULL}
};

#define LAYOUTS_OF_1_0	10

/* What a custom layout reserves if one of version 1.0 has the same room */
#define UNNAMED_RESERVED_VALUES	8

/* The built-in layouts' definitions, which load_builtins() fills in */
static struct
{
	ParsedLayout parsed;
	int64		room;			/* the last value for which the layout has
								 * room, reserved values included */
}			loaded[lengthof(builtins)];

/*
 * A number whose lowest "bits" bits are set.  Never called with 64: of a
 * timestamp that fills the ID, the top bit is left out before, and other
 * fields have at most 31 bits.
 */
static inline uint64
low_bits(int bits)
{
	Assert(bits < 64);
	return (UINT64CONST(1) << bits) - 1;
}

/* ---------- Definitions and names ---------- */

static void derive(Layout *layout, const ParsedLayout *parsed);

static void
load_builtins(void)
{
	if (loaded[0].room != 0)
		return;

	for (int i = 0; i < (int) lengthof(builtins); i++)
	{
		ParsedLayout *parsed = &loaded[i].parsed;
		LayoutError error;
		Layout		layout;

		if (builtins[i].definition != NULL)
			(void) definition_parse(builtins[i].definition, parsed, &error);
		parsed->kind = builtins[i].kind;
		parsed->added_later = i < LAYOUTS_OF_1_0 ? 0 : i;
		derive(&layout, parsed);
		loaded[i].room = layout.spec.max_value;
	}
}

/* The index in builtins[] of the layout with this definition, or -1 */
static int
find_builtin(const ParsedLayout *parsed)
{
	for (int i = 0; i < (int) lengthof(builtins); i++)
		if (memcmp(parsed, &loaded[i].parsed, sizeof(ParsedLayout)) == 0)
			return i;
	return -1;
}

/*
 * Read a built-in layout's name, in upper or lower case, or a definition.  The
 * first call, which precedes those of all other functions, loads the built-in
 * layouts.
 */
bool
layout_parse(const char *string, ParsedLayout *parsed, LayoutError *error)
{
	int			start = (int) strspn(string, LAYOUT_SPACES);
	int			length = (int) strcspn(string + start, ":" LAYOUT_SPACES);
	const char *rest = string + start + length;

	load_builtins();
	if (rest[strspn(rest, LAYOUT_SPACES)] != '\0')
	{
		error->reason = definition_parse(string, parsed, error);
		return error->reason == NULL;
	}

	/* A single word that is no field is a name. */
	for (int i = 0; i < (int) lengthof(builtins); i++)
	{
		if (strlen(builtins[i].name) == (size_t) length &&
			pg_strncasecmp(string + start, builtins[i].name, length) == 0)
		{
			*parsed = loaded[i].parsed;
			return true;
		}
	}
	error->reason = length == 0 ? "a name or fields are missing" :
		"there is no layout of this name";
	error->start = start;
	error->length = length;
	error->unknown_name = true;
	return false;
}

/* Print a layout's name, or its definition, into LAYOUT_TEXT_SIZE bytes */
void
layout_print(const ParsedLayout *parsed, char *string)
{
	int			builtin = find_builtin(parsed);

	if (builtin >= 0)
		strcpy(string, builtins[builtin].name);
	else
		definition_print(parsed, string);
}

/*
 * Set *parsed to what a built-in layout's definition says, and return its
 * text, or the layout's name if it cannot be written as fields.
 * layout_parse() reads both.  Returns NULL if there are no more.
 */
const char *
layout_get_builtin(int index, ParsedLayout *parsed)
{
	if (index == lengthof(builtins))
		return NULL;
	*parsed = loaded[index].parsed;
	return builtins[index].kind == LAYOUT_BITS ?
		builtins[index].definition : builtins[index].name;
}

/* The name of the built-in layout that this MAXVALUE is of, or NULL */
const char *
layout_of_max_value(int64 max_value)
{
	for (int i = 0; i < (int) lengthof(builtins); i++)
		if (loaded[i].room - builtins[i].reserved_values == max_value)
			return builtins[i].name;
	return NULL;
}

/* ---------- What follows from a definition ---------- */

/*
 * The layouts whose fields are bits
 *
 * If the fields take all 64 bits, IDs are generated without the timestamp's
 * top bit, because IDs are bigints, and those with the sign bit set would sort
 * before all others.  Reading an ID still uses the whole field, because
 * another system may have set the bit.
 *
 * The last tick of the timestamp's field is not used, so that layout_min_id()
 * can return a number larger than every ID.  Neither is the last tick whose
 * time a timestamptz can hold, so that layout_end_time() can return its
 * beginning, nor are those after it.  A timestamp that wraps
 * around has only the second of these ends.
 */
static void
derive_from_bits(Layout *layout, const ParsedLayout *parsed)
{
	GeneratorSpec *spec = &layout->spec;
	int			shift = 0;

	layout->nfields = parsed->nfields;
	for (int i = parsed->nfields - 1; i >= 0; i--)
	{
		LayoutField *field = &layout->fields[i];

		field->role = parsed->fields[i].role;
		strcpy(field->name, parsed->kind == LAYOUT_TRACE && field->role == LAYOUT_SEQUENCE ?
			   "counter" : parsed->fields[i].name);
		field->bits = parsed->fields[i].bits;
		field->shift = shift;
		field->unit = UINT64CONST(1) << shift;
		shift += field->bits;

		switch (field->role)
		{
			case LAYOUT_TICK:
				layout->tick_unit = field->unit;
				break;
			case LAYOUT_SHARD:
				/* 0 if the layout has another shard field already */
				layout->shard_unit = layout->shards > 1 ? 0 : field->unit;
				layout->shards <<= field->bits;
				break;
			case LAYOUT_SEQUENCE:
				layout->number_unit = field->unit;
				spec->slots <<= field->bits;
				break;
		}
	}

	if (layout->has_clock)
	{
		uint64		span;
		int64		end_tick;

		spec->epoch = parsed->epoch * 1000 - UNIX_EPOCH_OFFSET;

		/* From an epoch before 2000, this may be more than 2^63. */
		span = (uint64) (END_TIMESTAMP - 1) - (uint64) spec->epoch;
		layout->last_decodable = span / (uint64) spec->tick_usecs;

		end_tick = (int64) (Min(span, PG_INT64_MAX) /
							(uint64) spec->tick_usecs);
		if (parsed->kind == LAYOUT_TRACE)
			layout->tick_mask = low_bits(layout->fields[0].bits);
		else
		{
			int			bits = layout->fields[0].bits - (shift == 64 ? 1 : 0);

			end_tick = Min(end_tick, (int64) low_bits(bits));
		}
		spec->last_tick = end_tick - 1;
	}

	if (parsed->kind == LAYOUT_TRACE)
	{
		layout->first_number = 1;
		spec->slots--;
	}
}

/*
 * The layout "decimal"
 *
 * The counter is the sequence number, and it begins at 1.  The field called
 * "generator" is the tick.  No clock moves that tick on: when the last slot of
 * a tick has been taken, the sequence goes on with the first slot of the next
 * one.
 */
static void
derive_decimal(Layout *layout)
{
	layout->nfields = lengthof(decimal_fields);
	memcpy(layout->fields, decimal_fields, sizeof(decimal_fields));
	layout->number_unit = decimal_fields[0].unit;
	layout->tick_unit = decimal_fields[1].unit;
	layout->shard_unit = decimal_fields[2].unit;
	layout->first_number = 1;
	layout->spec.slots = DECIMAL_COUNTERS;
	layout->spec.last_tick = DECIMAL_GENERATORS - 1;
	layout->shards = DECIMAL_LAUNCHES;
}

/*
 * Fill in all of a layout but what layout_init() adds.  This does not need to
 * know the built-in layouts, so load_builtins() can use it.
 */
static void
derive(Layout *layout, const ParsedLayout *parsed)
{
	GeneratorSpec *spec = &layout->spec;

	memset(layout, 0, sizeof(Layout));
	layout->parsed = *parsed;
	spec->slots = 1;
	spec->tick_usecs = parsed->tick_usecs;
	layout->shards = 1;
	layout->tick_mask = PG_UINT64_MAX;
	layout->has_clock = parsed->tick_usecs != 0;
	layout->has_time = layout->has_clock && parsed->kind == LAYOUT_BITS;

	if (parsed->kind == LAYOUT_DECIMAL)
		derive_decimal(layout);
	else
		derive_from_bits(layout, parsed);

	layout->slot_bits = -1;
	if ((spec->slots & (spec->slots - 1)) == 0)
		layout->slot_bits = pg_leftmost_one_pos64((uint64) spec->slots);

	spec->max_value = (spec->last_tick + 1) * spec->slots - 1;
}

/*
 * Make a layout of a definition.
 *
 * The result must not be copied, because its spec points to its text.
 */
void
layout_init(Layout *layout, const ParsedLayout *parsed)
{
	int			builtin = find_builtin(parsed);
	GeneratorSpec *spec = &layout->spec;

	derive(layout, parsed);

	layout_print(parsed, layout->text);
	spec->layout = layout->text;
	spec->needs_update = builtin < 0;
	spec->is_default = builtin == 0;

	if (builtin >= 0)
		spec->max_value -= builtins[builtin].reserved_values;
	else
	{
		for (int i = 0; i < LAYOUTS_OF_1_0; i++)
		{
			if (loaded[i].room == spec->max_value)
			{
				spec->max_value -= UNNAMED_RESERVED_VALUES;
				break;
			}
		}
	}

	layout->last_year_value = PG_INT64_MAX;
	if (layout->has_time)
	{
		int64		end_tick = spec->last_tick + 1;
		int64		ticks_in_year = 365 * USECS_PER_DAY / spec->tick_usecs;

		/* The layout may be shorter than a year. */
		layout->last_year_value = spec->slots *
			(end_tick - Min(end_tick, ticks_in_year));
	}
}

/* ---------- IDs ---------- */

/* The ID that a shard makes of a sequence's value.  The caller checks both. */
uint64
layout_id(const Layout *layout, int64 value, int64 shard)
{
	int64		tick;
	int64		slot;
	uint64		id;
	uint64		rest = (uint64) shard;

	/* Avoid a division if possible: it would take longer than all the rest. */
	if (likely(layout->slot_bits >= 0))
	{
		tick = value >> layout->slot_bits;
		slot = value & (layout->spec.slots - 1);
	}
	else
	{
		tick = value / layout->spec.slots;
		slot = value % layout->spec.slots;
	}

	id = ((uint64) tick & layout->tick_mask) * layout->tick_unit +
		(uint64) (slot + layout->first_number) * layout->number_unit;
	if (likely(layout->shard_unit != 0 || rest == 0))
		return id + rest * layout->shard_unit;

	/*
	 * The shard has several fields.  The last of them has the lowest bits of
	 * the shard's number.
	 */
	for (int i = layout->nfields - 1; i >= 0; i--)
	{
		const LayoutField *field = &layout->fields[i];

		if (field->role == LAYOUT_SHARD)
		{
			id += (rest & low_bits(field->bits)) * field->unit;
			rest >>= field->bits;
		}
	}

	return id;
}

/*
 * The value of a field in an ID.  If the ID has bits above the timestamp, they
 * count as part of the timestamp.
 */
int64
layout_field(const Layout *layout, uint64 id, int index)
{
	const LayoutField *field = &layout->fields[index];

	if (layout->parsed.kind == LAYOUT_DECIMAL)
		return (int64) (id / field->unit % field->count);
	if (field->role == LAYOUT_TICK)
		return (int64) (id >> field->shift);
	return (int64) (id >> field->shift & low_bits(field->bits));
}

/* The tick of an ID whose layout tells its time, so has the timestamp first */
uint64
layout_tick(const Layout *layout, uint64 id)
{
	return id >> layout->fields[0].shift;
}

/* The number that all shard fields of an ID make together, or 0 */
int64
layout_shard(const Layout *layout, uint64 id)
{
	int64		shard = 0;

	for (int i = 0; i < layout->nfields; i++)
	{
		/* A layout of decimal digits has one such field, and no bits. */
		if (layout->fields[i].role == LAYOUT_SHARD)
			shard = shard << layout->fields[i].bits | layout_field(layout, id, i);
	}
	return shard;
}

/* The sequence number of an ID, or 0 if it has none */
int64
layout_number(const Layout *layout, uint64 id)
{
	for (int i = layout->nfields - 1; i >= 0; i--)
		if (layout->fields[i].role == LAYOUT_SEQUENCE)
			return layout_field(layout, id, i);
	return 0;
}

/* ---------- Ticks and times, for layouts with a clock ---------- */

/* The time at which a tick begins, or false if no timestamptz can hold it */
bool
layout_tick_time(const Layout *layout, uint64 tick, int64 *ts)
{
	if (tick > layout->last_decodable)
		return false;
	*ts = (int64) ((uint64) layout->spec.epoch +
				   tick * (uint64) layout->spec.tick_usecs);
	return true;
}

/* The tick in which a time is.  Returns false if no ID can have that time. */
bool
layout_time_tick(const Layout *layout, int64 ts, int64 *tick)
{
	if (ts < layout->spec.epoch || ts >= layout_end_time(layout))
		return false;
	*tick = (ts - layout->spec.epoch) / layout->spec.tick_usecs;
	return true;
}

/*
 * A number such that an ID has the time "ts" or a later one if and only if
 * it is >= that number.
 *
 * If "ts" is the epoch or earlier, this is 0, which is below every ID.  If it
 * is too late for any ID, this is the first number of the tick after the last
 * one, which is above every ID.  This is for layouts whose IDs tell their
 * time.
 */
int64
layout_min_id(const Layout *layout, int64 ts)
{
	const GeneratorSpec *spec = &layout->spec;
	int64		tick;

	if (ts <= spec->epoch)
		tick = 0;
	else if (ts > spec->epoch + spec->last_tick * spec->tick_usecs)
		tick = spec->last_tick + 1;
	else
		tick = (ts - spec->epoch - 1) / spec->tick_usecs + 1;
	return (int64) ((uint64) tick * layout->tick_unit);
}

/*
 * A number such that an ID has the time "ts" or an earlier one if and only if
 * it is <= that number: the one before the smallest ID of a later time.  This
 * is for layouts whose IDs tell their time.
 */
int64
layout_max_id(const Layout *layout, int64 ts)
{
	return layout_min_id(layout, Min(ts, PG_INT64_MAX - 1) + 1) - 1;
}
