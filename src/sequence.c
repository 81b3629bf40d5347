/*-------------------------------------------------------------------------
 *
 * sequence.c
 *	  Find, lock and check sequences.
 *
 * sequence.h says what is remembered of a sequence, and for how long.
 *
 * This file reads a sequence's page for the hint of an error only.
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/pg_class.h"
#include "catalog/pg_sequence.h"
#include "catalog/pg_type.h"
#include "commands/extension.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "storage/sinval.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/resowner.h"
#include "utils/syscache.h"

#include "compat.h"

#include "layout_type.h"
#include "page.h"

/*
 * A number that grows whenever a sequence in "sequences" is invalidated.  What
 * is read from the catalogs is kept with the number at that time, and is valid
 * while the number is the same.  0 stands for what has not been read yet.
 */
uint64		sequence_invalidations = 1;

/* The sequences that this backend has used, and the one used last */
static HTAB *sequences = NULL;
KnownSequence *sequence_last_used = NULL;

/* next_id_seq, and sequence_invalidations when it was found */
Oid			sequence_default_relid;
uint64		sequence_default_valid_at = 0;

/*
 * PostgreSQL calls this when what it knows of a relation is out of date, or
 * with InvalidOid if that may be so for all relations.
 *
 * Ignore relations that are not known here, because a session that uses
 * temporary tables has many such calls.
 */
static void
invalidate_relation(Datum arg pg_attribute_unused(), Oid relid)
{
	if (relid == InvalidOid ||
		hash_search(sequences, &relid, HASH_FIND, NULL) != NULL)
		sequence_invalidations++;
}

/* Make the table of sequences, and listen to changes of them. */
void
sequence_init(void)
{
	HASHCTL		ctl;

	ctl.keysize = sizeof(Oid);
	ctl.entrysize = sizeof(KnownSequence);
	sequences = hash_create("snowflake sequences", 16, &ctl,
							HASH_ELEM | HASH_BLOBS);

	CacheRegisterRelcacheCallback(invalidate_relation, (Datum) 0);
}

pg_noreturn static void
report_missing_relation(Oid relid)
{
	ereport(ERROR,
			(errcode(ERRCODE_UNDEFINED_TABLE),
			 errmsg("sequence with OID %u does not exist", relid)));
}

/* The slow path of sequence_find() */
KnownSequence *
sequence_find_slow(Oid relid)
{
	KnownSequence *seq = hash_search(sequences, &relid, HASH_FIND, NULL);

	if (seq == NULL)
	{
		/* OIDs that somebody makes up must not fill the memory. */
		AcceptInvalidationMessages();
		if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(relid)))
			report_missing_relation(relid);

		seq = hash_search(sequences, &relid, HASH_ENTER, NULL);
		memset(seq, 0, sizeof(KnownSequence));
		seq->relid = relid;
		seq->lxid = InvalidLocalTransactionId;
	}
	sequence_last_used = seq;
	return seq;
}

/*
 * Does a sequence belong to this extension?
 *
 * The last answer is kept until this backend receives an invalidation message
 * of any kind.  When ALTER EXTENSION adds or drops a sequence, PostgreSQL
 * sends no message about the sequence, but it does send one about pg_depend.
 *
 * This backend receives messages about its own changes only when it commits.
 * So a transaction that may have made such changes, which is one that has a
 * transaction ID, neither uses the last answer nor keeps one.
 */
bool
sequence_owned_by_extension(Oid relid)
{
	static Oid	last_relid = InvalidOid;
	static uint64 last_counter;
	static bool last_answer;
	uint64		counter = SharedInvalidMessageCounter;
	bool		changes = TransactionIdIsValid(GetTopTransactionIdIfAny());
	Oid			extension;
	bool		answer;

	if (relid == last_relid && counter == last_counter && !changes)
		return last_answer;

	extension = getExtensionOfObject(RelationRelationId, relid);
	answer = OidIsValid(extension) &&
		extension == get_extension_oid("snowflake", true);

	if (!changes)
	{
		last_relid = relid;
		last_counter = counter;
		last_answer = answer;
	}
	return answer;
}

/*
 * sequence_default(), if a known sequence has been invalidated since the last
 * call.  The sequence is the extension's member named next_id_seq, whatever
 * the search path, and whatever sequence of that name somebody else has put
 * beside next_id().
 *
 * ALTER EXTENSION ... DROP SEQUENCE does not invalidate the sequence, so
 * sessions that have used it go on using it.  But for a role that has no
 * privilege on it, check_privileges() asks in each transaction whether the
 * sequence is the extension's.
 *
 * This does not take long: few relations have this name, and the last answer of
 * sequence_owned_by_extension() is kept for check_privileges(), which needs it
 * for most roles.
 */
Oid
sequence_default_slow(void)
{
	uint64		invalidations = sequence_invalidations;
	Oid			sequence = InvalidOid;
	CatCList   *list;

	AcceptInvalidationMessages();
	list = SearchSysCacheList1(RELNAMENSP, CStringGetDatum("next_id_seq"));
	for (int i = 0; i < list->n_members && !OidIsValid(sequence); i++)
	{
		Oid			relid = ((Form_pg_class) GETSTRUCT(&list->members[i]->tuple))->oid;

		if (sequence_owned_by_extension(relid))
			sequence = relid;
	}
	ReleaseSysCacheList(list);
	if (!OidIsValid(sequence))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("sequence \"next_id_seq\" of extension \"snowflake\" does not exist"),
				 errhint("Give next_id() its sequence as the second argument.")));

	/* From here on, invalidate_relation() notices changes of the sequence. */
	(void) sequence_find(sequence);
	sequence_default_relid = sequence;
	sequence_default_valid_at = invalidations;
	return sequence;
}

/*
 * The MAXVALUE of a sequence, or 0 if the relation is no sequence.  It can
 * change at any time, unless the caller has locked the sequence.
 */
int64
sequence_read_max_value(Oid relid)
{
	HeapTuple	tuple;
	int64		max_value;

	AcceptInvalidationMessages();
	tuple = SearchSysCache1(SEQRELID, ObjectIdGetDatum(relid));
	if (!HeapTupleIsValid(tuple))
		return 0;
	max_value = ((Form_pg_sequence) GETSTRUCT(tuple))->seqmax;
	ReleaseSysCache(tuple);
	return max_value;
}

/* A relation's name, qualified and quoted */
static char *
qualified_name(Oid relid)
{
	return quote_qualified_identifier(get_namespace_name(get_rel_namespace(relid)),
									  get_rel_name(relid));
}

/*
 * A hint for somebody who wants IDs from a sequence that a column owns, or NULL
 * if none does.  Such a column usually takes its numbers from the sequence, and
 * after snowflake_alter_sequence() they would be values and not IDs.
 */
static char *
hint_if_owned(Oid relid)
{
	Oid			table;
	int32		column;

	if (!sequenceIsOwned(relid, DEPENDENCY_AUTO, &table, &column) &&
		!sequenceIsOwned(relid, DEPENDENCY_INTERNAL, &table, &column))
		return NULL;
	return psprintf("Use another sequence, as this one belongs to column \"%s\" of table \"%s\".",
					get_attname(table, column, false), get_rel_name(table));
}

/*
 * A hint about a sequence that serves a layout by its MAXVALUE, but is not fit
 * for IDs.  A column that owns it has most likely IDs from it.
 */
static char *
hint_to_alter(Oid relid, const char *layout)
{
	return psprintf("If nothing else takes values from it, its owner can use SELECT snowflake_alter_sequence(%s, %s).",
					quote_literal_cstr(qualified_name(relid)), quote_literal_cstr(layout));
}

/*
 * A hint about a sequence whose MAXVALUE is of no built-in layout.
 *
 * It names no layout, because the table may have IDs of any layout already.  A
 * schema tool may have copied a sequence without its MAXVALUE, or have taken
 * the MAXVALUE away.  The last value tells whether the sequence has been
 * used for IDs.
 *
 * Bigint's own MAXVALUE, which such a tool leaves behind, is of no custom
 * layout, either.
 */
static char *
hint_to_choose_layout(KnownSequence *seq)
{
	char	   *hint = hint_if_owned(seq->relid);
	bool		may_be_custom = seq->max_value != PG_INT64_MAX;
	FormData_pg_sequence_data data;
	char	   *name;

	if (hint != NULL)
		return hint;

	data = page_read_unchecked(seq);
	if (data.is_called && data.last_value >= SEQUENCE_COUNTER_LIMIT)
		return pstrdup(may_be_custom ?
					   "If it serves a custom layout, name that layout in this call, as its last argument. Otherwise, SELECT * FROM snowflake_check(), of extension snowflake_admin, shows the layout of the IDs that it generated if a column's default names it." :
					   "SELECT * FROM snowflake_check(), of extension snowflake_admin, shows the layout of the IDs that it generated if a column's default names it.");

	name = quote_literal_cstr(qualified_name(seq->relid));
	if (may_be_custom)
		return psprintf("If it serves a custom layout, name that layout in this call, as its last argument. Otherwise, if nothing else takes values from it, its owner can call snowflake_alter_sequence(%s, ...) with the layout of the table's IDs.",
						name);
	return psprintf("If nothing else takes values from it, its owner can call snowflake_alter_sequence(%s, ...) with the layout of the table's IDs.",
					name);
}

/*
 * Raise an error unless the MAXVALUE of a sequence says that it serves the
 * spec.  The extension's own sequence serves the default spec alone.
 */
static void
check_spec(KnownSequence *seq, const GeneratorSpec *spec)
{
	const char *served;
	const char *detail;
	const char *hint;
	bool		owned;

	if (seq->max_value == spec->max_value &&
		(spec->is_default || !sequence_owned_by_extension(seq->relid)))
		return;

	served = layout_of_max_value(seq->max_value);
	owned = sequence_owned_by_extension(seq->relid);
	if (owned && spec->layout != NULL && !spec->is_default)
	{
		detail = "The extension's own sequence serves layout \"instagram\" only.";
		hint = "Use CREATE SEQUENCE and snowflake_alter_sequence() to make a sequence for this layout, and name it in the call.";
	}
	else if (!owned && spec->layout != NULL && served != NULL)
	{
		detail = psprintf("The sequence serves layout \"%s\".", served);
		hint = psprintf("Name layout \"%s\" in the call, or use another sequence.", served);
	}
	else
	{
		if (owned)
			/* Something has changed the MAXVALUE of the extension's own. */
			hint = psprintf("Its owner can use ALTER SEQUENCE %s MAXVALUE %lld.",
							qualified_name(seq->relid),
							(long long) layout_type_default->spec.max_value);
		else
			hint = hint_to_choose_layout(seq);

		/* The caller named no layout, and the sequence does not tell one. */
		if (spec->layout == NULL)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("sequence \"%s\" serves no built-in layout",
							get_rel_name(seq->relid)),
					 errdetail("It has MAXVALUE %lld.", (long long) seq->max_value),
					 errhint("%s", hint)));
		detail = psprintf("The sequence has MAXVALUE %lld, but a sequence for this layout has MAXVALUE %lld.",
						  (long long) seq->max_value, (long long) spec->max_value);
	}

	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("cannot generate IDs of layout \"%s\" from sequence \"%s\"",
					spec->layout, get_rel_name(seq->relid)),
			 errdetail_internal("%s", detail),
			 errhint("%s", hint)));
}

/* Open a relation that is locked.  Raises an error if it is no sequence. */
static Relation
open_locked_relation(Oid relid)
{
	Relation	rel = try_relation_open(relid, NoLock);

	if (rel == NULL)
		report_missing_relation(relid);
	if (rel->rd_rel->relkind != RELKIND_SEQUENCE)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a sequence",
						RelationGetRelationName(rel))));
	return rel;
}

/* Raise an error about a sequence that is not fit for IDs of any layout. */
pg_noreturn static void
refuse_sequence(Oid relid, const char *detail, const char *hint)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("cannot generate IDs from sequence \"%s\"", get_rel_name(relid)),
			 errdetail_internal("%s", detail),
			 errhint("%s", hint)));
}

/*
 * Raise an error unless all sessions share the sequence and a crash leaves it
 * as it is.
 */
static void
check_persistence(Relation rel)
{
	Oid			relid = RelationGetRelid(rel);

	if (rel->rd_rel->relpersistence == RELPERSISTENCE_TEMP)
		refuse_sequence(relid, "The sequence is temporary.",
						"Use a sequence that all sessions share and that outlives them.");
	if (rel->rd_rel->relpersistence == RELPERSISTENCE_UNLOGGED)
		refuse_sequence(relid, "The sequence is unlogged and would repeat IDs after a crash.",
						psprintf("Its owner can use ALTER SEQUENCE %s SET LOGGED.", qualified_name(relid)));
}

/*
 * What shows that a sequence was not set up for next_id(), or NULL
 *
 * next_id() itself goes by none of these: it takes values one by one from the
 * page, and never begins again.  But nextval() goes by them, so a sequence that
 * has them may be used by something else.
 */
static char *
fault_of_parameters(Form_pg_sequence form)
{
	if (form->seqtypid != INT8OID)
		return psprintf("The sequence is of type %s, but a sequence for IDs must be of type bigint.",
						format_type_be(form->seqtypid));
	if (form->seqincrement != 1)
		return psprintf("The sequence has INCREMENT %lld.",
						(long long) form->seqincrement);
	if (form->seqcache != 1)
		return psprintf("The sequence has CACHE %lld, with which nextval() would reserve values for a session.",
						(long long) form->seqcache);
	if (form->seqcycle)
		return pstrdup("The sequence has CYCLE, with which nextval() would start over.");
	return NULL;
}

/*
 * Does a locked sequence have all that snowflake_alter_sequence() would set?
 */
bool
sequence_is_fit_for(Oid relid, const GeneratorSpec *spec)
{
	HeapTuple	tuple = SearchSysCache1(SEQRELID, ObjectIdGetDatum(relid));
	Form_pg_sequence form;
	Oid			table;
	int32		column;
	bool		fit;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for sequence %u", relid);
	form = (Form_pg_sequence) GETSTRUCT(tuple);
	fit = form->seqmax == spec->max_value &&
		fault_of_parameters(form) == NULL &&
		!sequenceIsOwned(relid, DEPENDENCY_AUTO, &table, &column);
	ReleaseSysCache(tuple);
	return fit;
}

/*
 * Read what the catalogs say of a locked sequence, and check that it can be
 * used for this spec.  "invalidations" is what sequence_invalidations was
 * before the relation was opened: if it has changed since, then what is read
 * here counts as out of date at once.
 */
static void
load_sequence(KnownSequence *seq, Relation rel, const GeneratorSpec *spec, uint64 invalidations)
{
	HeapTuple	tuple;
	Form_pg_sequence form;
	char	   *fault;

	check_persistence(rel);

	tuple = SearchSysCache1(SEQRELID, ObjectIdGetDatum(seq->relid));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for sequence %u", seq->relid);
	form = (Form_pg_sequence) GETSTRUCT(tuple);

	/* The page that is pinned may be of a file that the sequence had. */
	if (page_pinned.seq == seq)
		page_unpin();
	seq->file = RelationFileLocator(rel);
	seq->new_file = rel->rd_createSubid != InvalidSubTransactionId ||
		RelationFirstFileSubid(rel) != InvalidSubTransactionId;
	seq->needs_wal = RelationNeedsWAL(rel);
	seq->max_value = form->seqmax;

	check_spec(seq, spec);
	fault = fault_of_parameters(form);
	if (fault != NULL)
		refuse_sequence(seq->relid, fault, hint_to_alter(seq->relid, spec->layout));
	seq->valid_at = invalidations;

	ReleaseSysCache(tuple);
}

/*
 * Check that the current role may use a sequence in this way.
 *
 * To take values it needs USAGE or UPDATE, as for nextval(), but UPDATE for a
 * spec that asks for it.  To set the last value it needs UPDATE, as for
 * setval().  To look at the sequence it needs SELECT, USAGE or UPDATE.
 *
 * Everyone who may call next_id() may take values of the extension's own
 * sequence through it, and look at it, but not set it.
 */
static void
check_privileges(KnownSequence *seq, const GeneratorSpec *spec, SequenceUse use)
{
	bool		for_custom = use == SEQUENCE_TAKE && spec->needs_update;
	AclMode		enough = ACL_UPDATE;	/* the role needs any one of these */
	const char *to_grant = "UPDATE";

	if (use == SEQUENCE_TAKE && !for_custom)
	{
		enough = ACL_USAGE | ACL_UPDATE;
		to_grant = "USAGE";
	}
	else if (use == SEQUENCE_LOOK)
	{
		enough = ACL_USAGE | ACL_UPDATE | ACL_SELECT;
		to_grant = "SELECT";
	}

	if (pg_class_aclcheck(seq->relid, GetUserId(), enough) != ACLCHECK_OK &&
		(use == SEQUENCE_SET || !sequence_owned_by_extension(seq->relid)))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied for sequence %s",
						get_rel_name(seq->relid)),
				 for_custom ?
				 errdetail("A custom layout needs UPDATE, because one with another epoch could push the sequence years ahead.") : 0,
				 errhint("The sequence's owner can GRANT %s ON SEQUENCE.",
						 to_grant)));
}

/*
 * Check that the current role may use a locked sequence, and that the sequence
 * serves the spec.  A role without privileges is told no more of it than its
 * name, and that it is a sequence.
 */
static void
check_locked_sequence(KnownSequence *seq, const GeneratorSpec *spec, SequenceUse use)
{
	uint64		invalidations = sequence_invalidations;
	Relation	rel = NULL;

	if (seq->valid_at != invalidations)
	{
		seq->valid_at = 0;
		seq->taker = InvalidOid;
		rel = open_locked_relation(seq->relid);
	}

	/* A spec may need a privilege that the one before did not need. */
	if (use != SEQUENCE_TAKE || seq->taker != GetUserId() || seq->spec != spec)
		check_privileges(seq, spec, use);

	if (rel != NULL)
	{
		load_sequence(seq, rel, spec, invalidations);
		relation_close(rel, NoLock);
	}
	else if (seq->spec != spec)
		check_spec(seq, spec);

	seq->spec = spec;
	seq->taker = use == SEQUENCE_TAKE ? GetUserId() : InvalidOid;
}

/*
 * Called when a transaction begins to use a sequence: if an earlier transaction
 * of this session made the file, let the catalogs be read again.
 *
 * That transaction has left new_file set.  From its commit on the file needs
 * WAL, even under wal_level = minimal, and a record from before the commit is
 * not enough: log_values() in generator.c says why.  Its invalidations, which
 * this backend has accepted when it took the lock, should do the same.  This
 * does not rely on them, because without that WAL a crash causes duplicates.
 */
static void
read_again_if_new(KnownSequence *seq)
{
	if (seq->new_file)
		seq->valid_at = 0;
}

/*
 * Lock a sequence for this transaction.
 *
 * The lock is the one that nextval() takes, and it is held until the
 * transaction ends, too.  It belongs to the top transaction, because this
 * backend remembers that the top transaction has it, and the rollback of a
 * subtransaction must not release it.
 */
static void
lock_sequence(KnownSequence *seq)
{
	if (seq->lxid != MyLocalTransactionId)
	{
		ResourceOwner owner = CurrentResourceOwner;

		CurrentResourceOwner = TopTransactionResourceOwner;
		LockRelationOid(seq->relid, RowExclusiveLock);
		CurrentResourceOwner = owner;

		read_again_if_new(seq);
		seq->taker = InvalidOid;
		seq->lxid = MyLocalTransactionId;
	}
}

/* The slow path of sequence_lock_and_get_max_value() */
int64
sequence_lock_and_get_max_value_slow(KnownSequence *seq)
{
	lock_sequence(seq);
	return sequence_read_max_value(seq->relid);
}

/*
 * Lock a sequence for this transaction.  Raises an error unless the current
 * role may use it in this way and it serves the spec.
 */
void
sequence_lock_and_check(KnownSequence *seq, const GeneratorSpec *spec, SequenceUse use)
{
	lock_sequence(seq);
	check_locked_sequence(seq, spec, use);
}

/*
 * Lock a sequence to look at it, and check that the current role may do so.
 * Does not wait: returns false if another session has a lock on the sequence
 * that conflicts with ours, as ALTER SEQUENCE takes.
 *
 * The caller releases the lock by sequence_unlock_after_look(), so that a look
 * at all sequences of a database does not fill PostgreSQL's table of locks.
 * If an error is raised before that, the rollback of the transaction or
 * subtransaction releases the lock.
 */
bool
sequence_lock_to_look(KnownSequence *seq, const GeneratorSpec *spec)
{
	if (!ConditionalLockRelationOid(seq->relid, RowExclusiveLock))
		return false;

	/* In a transaction that takes values, lock_sequence() has done this. */
	if (seq->lxid != MyLocalTransactionId)
		read_again_if_new(seq);
	check_locked_sequence(seq, spec, SEQUENCE_LOOK);
	return true;
}

/* Release the lock of sequence_lock_to_look(). */
void
sequence_unlock_after_look(KnownSequence *seq)
{
	UnlockRelationOid(seq->relid, RowExclusiveLock);
}

/*
 * Lock a sequence as ALTER SEQUENCE does, and check that the current role may
 * alter it and that it can be altered to serve a layout.  Returns its name,
 * qualified and quoted, and its present MAXVALUE.
 */
char *
sequence_lock_to_alter(Oid relid, int64 *max_value)
{
	Relation	rel;
	Oid			table;
	int32		column;
	char	   *name;

	/*
	 * Take a weak lock first, and check that the role owns the sequence.
	 * Otherwise any role could call this function to make other sessions'
	 * INSERTs wait.  The weak lock keeps the owner from changing.
	 *
	 * The weak lock adds one deadlock to those of ALTER SEQUENCE: a session
	 * that has taken values, and then wants ACCESS EXCLUSIVE, waits for our
	 * weak lock while we wait for the lock that it has.  PostgreSQL then ends
	 * one of the two.
	 */
	LockRelationOid(relid, AccessShareLock);
	rel = open_locked_relation(relid);

	if (!pg_class_ownercheck(relid, GetUserId()))
		aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_SEQUENCE,
					   RelationGetRelationName(rel));

	LockRelationOid(relid, ShareRowExclusiveLock);

	check_persistence(rel);

	if (sequenceIsOwned(relid, DEPENDENCY_INTERNAL, &table, &column))
		refuse_sequence(relid,
						psprintf("The sequence belongs to identity column \"%s\" of table \"%s\".",
								 get_attname(table, column, false), get_rel_name(table)),
						psprintf("CALL snowflake_move(%s), of extension snowflake_admin, replaces the identity by a default of next_id().",
								 quote_literal_cstr(qualified_name(table))));

	*max_value = sequence_read_max_value(relid);
	name = qualified_name(relid);
	relation_close(rel, NoLock);
	return name;
}
