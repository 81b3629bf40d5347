/*-------------------------------------------------------------------------
 *
 * sequence.h
 *	  Which sequences may be used, and by whom.
 *
 * Include it after compat.h.
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_SEQUENCE_H
#define SNOWFLAKE_SEQUENCE_H

#include "access/xlogdefs.h"
#include "datatype/timestamp.h"
#include "layout.h"
#include "storage/buf.h"
#include "storage/proc.h"
#include "utils/acl.h"
#include "utils/rel.h"

/*
 * The meaning of a sequence's values: value = tick * slots + slot.
 *
 * The owner of a sequence chooses its kind of value by its MAXVALUE.  Where
 * two kinds may share a MAXVALUE, a caller needs the right to set the sequence,
 * because one call with a wrong epoch could push it years ahead.
 */
typedef struct TickSpec
{
	uint64		number;			/* unique among the session's specs */
	TimestampTz epoch;			/* when tick 0 began */
	int64		tick_usecs;		/* length of a tick in microseconds; 0 if the
								 * clock does not matter */
	int64		slots;			/* values per tick */
	int64		last_tick;
	int64		max_value;		/* the last value, and the MAXVALUE of a
								 * sequence of this kind */
	bool		is_default;		/* does the extension's own sequence have this
								 * kind? */
	bool		needs_update;	/* may another kind have this max_value? */
	const char *layout;			/* for messages; lives as long as the session */
} TickSpec;

/*
 * The values that can be taken while the clock is within a tick.
 */
typedef struct TickWindow
{
	TimestampTz start;			/* when the tick began */
	TimestampTz end;			/* and when the next one begins */
	int64		first;			/* its first value */
	int64		last;			/* the last value that is not too far ahead of
								 * its start */
	int64		max_lead;		/* as this allows */
} TickWindow;

/*
 * A sequence as this backend knows it.
 *
 * A transaction locks a sequence once, and a role's privileges are checked
 * once in a transaction.  The members from the catalogs stay good until the
 * catalogs send an invalidation: "loaded" then differs from
 * "sequence_invalidations".
 */
typedef struct SequenceState
{
	Oid			relid;			/* hash key */
	LocalTransactionId lxid;	/* transaction that holds our lock */
	Oid			taker;			/* role that may take values of kind "spec", as
								 * this transaction has checked; or InvalidOid */
	TickSpec	spec;			/* kind of value that the sequence serves */

	/* From the catalogs. */
	uint64		loaded;
	RelFileLocator file;
	int64		max_value;
	bool		needs_wal;

	/* For the generator; catalog changes do not invalidate these. */
	Buffer		buffer;			/* where the page was seen last */
	bool		logged;			/* is the page's count known to be of WAL that
								 * was written for the file? */
	TickWindow	window;
} SequenceState;

#pragma GCC visibility push(hidden)
extern uint64 sequence_invalidations;
extern SequenceState *sequence_last_used;

extern void sequence_init(void);
extern SequenceState *sequence_look_up(Oid relid);
extern bool sequence_owned_by_extension(Oid relid);
extern bool sequence_open(SequenceState *seq, const TickSpec *spec,
						  bool take, bool wait);
extern char *sequence_open_to_alter(Oid relid, int64 *max_value);
#pragma GCC visibility pop

static inline SequenceState *
sequence_find(Oid relid)
{
	if (likely(sequence_last_used != NULL && sequence_last_used->relid == relid))
		return sequence_last_used;
	return sequence_look_up(relid);
}

/*
 * Has this transaction found that the current role may take values of this
 * kind?
 */
static inline bool
sequence_is_open(const SequenceState *seq, const TickSpec *spec)
{
	return seq->lxid == MyLocalTransactionId &&
		seq->loaded == sequence_invalidations &&
		seq->taker == GetUserId() &&
		seq->spec.number == spec->number;
}

#endif							/* SNOWFLAKE_SEQUENCE_H */
