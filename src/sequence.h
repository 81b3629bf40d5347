/*-------------------------------------------------------------------------
 *
 * sequence.h
 *	  Find, lock and check sequences.
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
#include "miscadmin.h"
#include "storage/buf.h"
#include "storage/proc.h"
#include "utils/acl.h"
#include "utils/rel.h"

/*
 * The values that can be taken while the clock is within a tick.
 */
typedef struct TickWindow
{
	TimestampTz start;			/* when the tick began */
	TimestampTz end;			/* and when the next one begins */
	int64		first;			/* its first value */
	int64		last;			/* the last value whose tick begins at most
								 * max_lead after start */
	int64		max_lead;		/* the limit for which "last" was computed */
} TickWindow;

/*
 * A sequence as this backend knows it.
 *
 * A transaction locks a sequence once, and a role's privileges are checked
 * once in a transaction.  The members from the catalogs are valid while
 * "loaded" equals "sequence_invalidations".
 */
typedef struct SequenceState
{
	Oid			relid;			/* hash key */
	LocalTransactionId lxid;	/* top transaction that holds our lock */
	Oid			taker;			/* role whose right to take values of "spec"
								 * this transaction has checked; or InvalidOid */
	TickSpec	spec;			/* what the sequence serves */

	/* From the catalogs. */
	uint64		loaded;			/* sequence_invalidations when they were read */
	RelFileLocator file;
	int64		max_value;
	bool		new_file;		/* was it made in this transaction? */
	bool		needs_wal;

	/* For the generator */
	Buffer		buffer;			/* where the page was seen last */
	XLogRecPtr	record_lsn;		/* LSN of the last record of this file that
								 * this backend wrote, or knows that another
								 * one wrote; or InvalidXLogRecPtr */
	TickWindow	window;
} SequenceState;

/*
 * The sequence of functions that are given none, and the OIDs of those that have
 * been called.  There are four such functions: next_id(), next_id(shard),
 * next_ids(shard, count) and snowflake_status().  Valid while "invalidations"
 * equals "sequence_invalidations".
 */
typedef struct DefaultSequence
{
	Oid			functions[4];	/* the last one first, then InvalidOid */
	Oid			sequence;
	uint64		invalidations;
} DefaultSequence;

/*
 * What a caller is about to do with a sequence, which decides the privileges it
 * needs
 */
typedef enum SequenceUse
{
	SEQUENCE_TAKE,				/* take values, as nextval() does */
	SEQUENCE_SET,				/* set the last value, as setval() does */
	SEQUENCE_LOOK				/* read it */
} SequenceUse;

#pragma GCC visibility push(hidden)
extern uint64 sequence_invalidations;
extern SequenceState *sequence_last_used;
extern DefaultSequence default_sequence;

extern void sequence_init(void);
extern SequenceState *sequence_find_slow(Oid relid);
extern bool sequence_owned_by_extension(Oid relid);
extern Oid	sequence_default_slow(Oid function);
extern int64 sequence_read_max_value(Oid relid);
extern int64 sequence_lock_max_value_slow(SequenceState *seq);
extern void sequence_lock_and_check(SequenceState *seq, const TickSpec *spec,
						  SequenceUse use);
extern bool sequence_lock_to_look(SequenceState *seq, const TickSpec *spec,
								  bool wait);
extern void sequence_unlock_after_look(SequenceState *seq);
extern char *sequence_lock_to_alter(Oid relid, int64 *max_value);
#pragma GCC visibility pop

static inline SequenceState *
sequence_find(Oid relid)
{
	if (likely(sequence_last_used != NULL && sequence_last_used->relid == relid))
		return sequence_last_used;
	return sequence_find_slow(relid);
}

static inline Oid
sequence_default(Oid function)
{
	if (likely(default_sequence.invalidations == sequence_invalidations))
	{
		for (int i = 0; i < (int) lengthof(default_sequence.functions); i++)
		{
			if (default_sequence.functions[i] == function)
				return default_sequence.sequence;
		}
	}
	return sequence_default_slow(function);
}

/*
 * Lock a sequence, as sequence_lock_and_check() will do, so that nobody can alter it in
 * between, and return its MAXVALUE, or 0 if the relation is no sequence.
 */
static inline int64
sequence_lock_max_value(Oid relid)
{
	SequenceState *seq = sequence_find(relid);

	if (likely(seq->lxid == MyLocalTransactionId &&
			   seq->loaded == sequence_invalidations))
		return seq->max_value;
	return sequence_lock_max_value_slow(seq);
}

/*
 * Has this transaction found that the current role may take values of this
 * spec?
 */
static inline bool
sequence_is_checked(const SequenceState *seq, const TickSpec *spec)
{
	return seq->lxid == MyLocalTransactionId &&
		seq->loaded == sequence_invalidations &&
		seq->taker == GetUserId() &&
		seq->spec.number == spec->number;
}

#endif							/* SNOWFLAKE_SEQUENCE_H */
