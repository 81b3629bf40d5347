/*-------------------------------------------------------------------------
 *
 * sequence.h
 *	  Find, lock and check sequences.
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_SEQUENCE_H
#define SNOWFLAKE_SEQUENCE_H

#include "access/xlogdefs.h"
#include "datatype/timestamp.h"
#include "miscadmin.h"
#include "storage/buf.h"
#include "storage/proc.h"

#include "layout.h"

/*
 * A last value below this limit, 2^40, is taken for that of a counter of rows.
 * A counter may be beyond it, for example after a large START.  Once it has
 * been called, snowflake_alter_sequence() refuses to make it serve another
 * layout.  next_id() does not look at the limit.
 *
 * The last value of a sequence that has followed the clock in a built-in
 * layout is above the limit: even in the one with the smallest values,
 * "trace", the clock passed it in 2004.  The values of a custom layout with
 * long ticks may be below.
 */
#define SEQUENCE_COUNTER_LIMIT		(INT64CONST(1) << 40)

/*
 * A sequence as this backend knows it.
 *
 * To take or set values, a transaction locks a sequence once, and each look
 * takes and releases its own lock.  A role's right to take values is
 * checked once in a transaction, and again after the role or the spec has
 * changed, after an invalidation, and after a look or a set.  Its right to look
 * or to set a value is checked in each call.
 * The members from the catalogs are valid while "valid_at" equals
 * "sequence_invalidations".
 */
typedef struct KnownSequence
{
	Oid			relid;			/* hash key */
	LocalTransactionId lxid;	/* top transaction that holds our lock */
	Oid			taker;			/* role whose right to take values of "spec"
								 * this transaction has checked, or
								 * InvalidOid */
	const GeneratorSpec *spec;	/* the spec for which the sequence was
								 * checked last */

	/* From the catalogs. */
	uint64		valid_at;		/* sequence_invalidations when they were
								 * read */
	RelFileLocator file;
	int64		max_value;
	bool		new_file;		/* was it made in the transaction that read
								 * this?  See read_again_if_new(). */
	bool		needs_wal;

	/* For page.c and generator.c */
	Buffer		buffer;			/* where the page was seen last */
	XLogRecPtr	record_lsn;		/* LSN of the last record that this backend
								 * wrote, or InvalidXLogRecPtr */
} KnownSequence;

/* The uses of a sequence that need different privileges */
typedef enum SequenceUse
{
	SEQUENCE_TAKE,				/* take values, as nextval() does */
	SEQUENCE_SET,				/* set the last value, as setval() does */
	SEQUENCE_LOOK				/* read it */
} SequenceUse;

#pragma GCC visibility push(hidden)
extern uint64 sequence_invalidations;
extern KnownSequence *sequence_last_used;
extern Oid	sequence_default_relid;
extern uint64 sequence_default_valid_at;

extern void sequence_init(void);
extern KnownSequence *sequence_find_slow(Oid relid);
extern bool sequence_owned_by_extension(Oid relid);
extern Oid	sequence_default_slow(void);
extern int64 sequence_read_max_value(Oid relid);
extern int64 sequence_lock_and_get_max_value_slow(KnownSequence *seq);
extern void sequence_lock_and_check(KnownSequence *seq, const GeneratorSpec *spec, SequenceUse use);
extern bool sequence_lock_to_look(KnownSequence *seq, const GeneratorSpec *spec);
extern void sequence_unlock_after_look(KnownSequence *seq);
extern bool sequence_is_fit_for(Oid relid, const GeneratorSpec *spec);
extern char *sequence_lock_to_alter(Oid relid, int64 *max_value);
#pragma GCC visibility pop

/*
 * What calls of next_id() do in most cases is inline.  What they do otherwise
 * is in sequence_lock_and_check(), or in a function whose name ends in _slow.
 */

/*
 * Find what this backend knows of a sequence.  Raises an error if the OID is
 * new to this backend and no relation has it.  Whether it still exists and is
 * a sequence is for sequence_lock_and_check() and sequence_lock_to_look() to
 * check.
 */
static inline KnownSequence *
sequence_find(Oid relid)
{
	if (likely(sequence_last_used != NULL && sequence_last_used->relid == relid))
		return sequence_last_used;
	return sequence_find_slow(relid);
}

/* next_id_seq, the sequence of calls that name none */
static inline Oid
sequence_default(void)
{
	if (likely(sequence_default_valid_at == sequence_invalidations))
		return sequence_default_relid;
	return sequence_default_slow();
}

/*
 * Lock a sequence and return its MAXVALUE, or 0 if the relation is no
 * sequence.  The caller needs the MAXVALUE to choose the spec for
 * sequence_lock_and_check(), and the lock keeps others from altering the
 * sequence in between.
 */
static inline int64
sequence_lock_and_get_max_value(Oid relid)
{
	KnownSequence *seq = sequence_find(relid);

	if (likely(seq->lxid == MyLocalTransactionId &&
			   seq->valid_at == sequence_invalidations))
		return seq->max_value;
	return sequence_lock_and_get_max_value_slow(seq);
}

/*
 * Has this transaction called sequence_lock_and_check() with SEQUENCE_TAKE for
 * this spec and the current role, and is its result still valid?
 */
static inline bool
sequence_is_checked(const KnownSequence *seq, const GeneratorSpec *spec)
{
	return seq->lxid == MyLocalTransactionId &&
		seq->valid_at == sequence_invalidations &&
		seq->taker == GetUserId() &&
		seq->spec == spec;
}

#endif							/* SNOWFLAKE_SEQUENCE_H */
