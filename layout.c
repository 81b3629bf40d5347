/*-------------------------------------------------------------------------
 *
 * layout.c
 *	  The bits of an ID: compose them, take them apart, bound them by time.
 *
 * Pure functions over a description of a layout.  This file knows nothing of
 * the server: no clock, no sequence, no setting, no error reporting, so that
 * it can be built and fuzzed on its own.
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

#include "layout.h"

static inline uint64
low_bits(int bits)
{
	return bits >= 64 ? PG_UINT64_MAX : (UINT64CONST(1) << bits) - 1;
}

/*
 * Fill in everything that follows from the list of fields.
 *
 * Where the fields take all 64 bits, the timestamp loses its top bit: IDs
 * are bigints, and those with the sign bit set would sort before all others.
 * Decoding still reads the whole field, as other systems may have used it.
 */
void
layout_finish(Layout *layout)
{
	int			shift = 0;
	int			timestamp_bits = 0;

	layout->slots = 1;
	layout->shards = 1;

	for (int i = layout->nfields - 1; i >= 0; i--)
	{
		LayoutField *field = &layout->fields[i];

		field->shift = shift;
		shift += field->bits;

		switch (field->role)
		{
			case LAYOUT_TIMESTAMP:
				layout->timestamp_shift = field->shift;
				timestamp_bits = field->bits;
				break;
			case LAYOUT_SHARD:
				layout->shards <<= field->bits;
				break;
			case LAYOUT_SEQUENCE:
				layout->sequence_shift = field->shift;
				layout->slots <<= field->bits;
				break;
		}
	}

	if (shift == 64)
		timestamp_bits--;
	layout->end_tick = (int64) low_bits(timestamp_bits);
}

/*
 * Instagram's layout.  The epoch is the constant of their published function.
 */
void
layout_instagram(Layout *layout)
{
	static const Layout instagram = {
		.name = "instagram",
		.epoch = INT64CONST(1314220021721) * 1000,
		.tick = 1000,
		.nfields = 3,
		.fields = {
			{.name = "timestamp",.role = LAYOUT_TIMESTAMP,.bits = 41},
			{.name = "shard",.role = LAYOUT_SHARD,.bits = 13},
			{.name = "sequence",.role = LAYOUT_SEQUENCE,.bits = 10},
		}
	};

	*layout = instagram;
	layout_finish(layout);
}

/*
 * Put an ID together.  The caller has checked that every part fits.
 */
uint64
layout_compose(const Layout *layout, int64 tick, int64 shard, int64 slot)
{
	uint64		id = (uint64) tick << layout->timestamp_shift |
		(uint64) slot << layout->sequence_shift;
	uint64		rest = (uint64) shard;

	/* The fields of the shard hold its digits, the lowest one last. */
	for (int i = layout->nfields - 1; i >= 0; i--)
	{
		const LayoutField *field = &layout->fields[i];

		if (field->role == LAYOUT_SHARD)
		{
			id |= (rest & low_bits(field->bits)) << field->shift;
			rest >>= field->bits;
		}
	}

	return id;
}

/*
 * The bits of one field.
 */
int64
layout_field(const Layout *layout, uint64 id, int field)
{
	const LayoutField *f = &layout->fields[field];

	return (int64) (id >> f->shift & low_bits(f->bits));
}

int64
layout_tick(const Layout *layout, uint64 id)
{
	/* The timestamp comes first, so what is above it is zero. */
	return (int64) (id >> layout->timestamp_shift);
}

int64
layout_shard(const Layout *layout, uint64 id)
{
	int64		shard = 0;

	for (int i = 0; i < layout->nfields; i++)
	{
		if (layout->fields[i].role == LAYOUT_SHARD)
			shard = shard << layout->fields[i].bits |
				layout_field(layout, id, i);
	}

	return shard;
}

int64
layout_slot(const Layout *layout, uint64 id)
{
	return (int64) (id >> layout->sequence_shift) & (layout->slots - 1);
}

/*
 * The time at which a tick begins.
 */
int64
layout_tick_time(const Layout *layout, int64 tick)
{
	return layout->epoch + tick * layout->tick;
}

/*
 * The tick that a time falls into; false if no ID can have that time.
 */
bool
layout_time_tick(const Layout *layout, int64 time, int64 *tick)
{
	if (time < layout->epoch ||
		time >= layout_tick_time(layout, layout->end_tick))
		return false;
	*tick = (time - layout->epoch) / layout->tick;
	return true;
}

/*
 * The smallest ID whose time is "time" or later.
 *
 * IDs are positive and the end tick is never issued, so 0 is below and the
 * end tick's first ID is above every ID there is.
 */
int64
layout_min_id(const Layout *layout, int64 time)
{
	int64		tick;

	if (time <= layout->epoch)
		tick = 0;
	else if (time > layout_tick_time(layout, layout->end_tick - 1))
		tick = layout->end_tick;
	else
		tick = (time - layout->epoch - 1) / layout->tick + 1;

	return (int64) ((uint64) tick << layout->timestamp_shift);
}

/*
 * The largest ID whose time is "time" or earlier: the one before the first
 * whose time is later.
 */
int64
layout_max_id(const Layout *layout, int64 time)
{
	return layout_min_id(layout, Min(time, PG_INT64_MAX - 1) + 1) - 1;
}
