/*-------------------------------------------------------------------------
 *
 * generator.h
 *	  Take the next value of a sequence that follows the clock.
 *
 * The C code of this extension uses these words:
 *
 *	tick		a span of time, such as a millisecond, and its number since the
 *				layout's epoch; in a layout without a clock only a number
 *	slot		the number of a value within its tick, from 0 on
 *	value		what a sequence holds: tick * slots + slot
 *	spec		what the generator is told of a layout (GeneratorSpec in
 *				layout.h)
 *	covered		a value is covered if a WAL record says that it and all values
 *				before it are used, so that it does not come again after a
 *				crash; the last covered value is often larger than the last
 *				value that was taken
 *	serve		a sequence serves a spec, or the spec's layout, if its MAXVALUE
 *				is the spec's last value
 *	file		the file on disk that has the sequence's page; commands that
 *				rewrite the sequence, such as ALTER SEQUENCE ... RESTART, give
 *				it another one
 *	note		a RecordNote (page.h)
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_GENERATOR_H
#define SNOWFLAKE_GENERATOR_H

#include "commands/sequence.h"

#include "sequence.h"
#include "settings.h"

#pragma GCC visibility push(hidden)
extern void generator_check(Oid relid, const GeneratorSpec *spec, const char *caller);
extern int64 generator_next(Oid relid, const GeneratorSpec *spec,
							const SettingsLimits *limits, int64 *count,
							const char *caller);
extern void generator_advance(Oid relid, const GeneratorSpec *spec,
							  const SettingsLimits *limits, int64 value);
extern const char *generator_state(Oid relid, const GeneratorSpec *spec,
								   const SettingsLimits *limits,
								   FormData_pg_sequence_data *data);
#pragma GCC visibility pop

#endif							/* SNOWFLAKE_GENERATOR_H */
