/*-------------------------------------------------------------------------
 *
 * sequence.c
 *	  Find, lock and check sequences.
 *
 * A sequence's catalog entries are read once and remembered until the catalogs
 * send an invalidation.  A role's privileges are checked once in a transaction.
 *
 * This file does not read a sequence's page.
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
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/resowner.h"
#include "utils/syscache.h"

#include "compat.h"

#include "sequence.h"

uint64		sequence_invalidations = 1;

SequenceState *sequence_last_used = NULL;

static HTAB *sequences = NULL;

DefaultSequence default_sequence;

/* How often default_sequence was forgotten */
static uint64 function_changes = 0;


/*
 * A relation's catalog entries may have changed, or those of all relations if
 * "relid" is InvalidOid.  Ignore relations that are not known here: a session
 * with many temporary tables sends many of these messages.
 *
 * A change may have given the sequence another file, which can have the name of
 * an earlier one, as PostgreSQL gives out the numbers of dropped files again.
 * So forget what was logged for the file.
 */
static void
invalidate_relation(Datum arg pg_attribute_unused(), Oid relid)
{
	SequenceState *seq;

	if (relid == InvalidOid)
	{
		HASH_SEQ_STATUS status;

		hash_seq_init(&status, sequences);
		while ((seq = hash_seq_search(&status)) != NULL)
			seq->record_lsn = InvalidXLogRecPtr;
		sequence_invalidations++;
	}
	else if ((seq = hash_search(sequences, &relid, HASH_FIND, NULL)) != NULL)
	{
		seq->record_lsn = InvalidXLogRecPtr;
		sequence_invalidations++;
	}
}

/*
 * Some function has changed, and it may be next_id() that is in another schema
 * now.
 */
static void
forget_default(Datum arg pg_attribute_unused(),
			   int cacheid pg_attribute_unused(),
			   uint32 hashvalue pg_attribute_unused())
{
	default_sequence.invalidations = 0;
	function_changes++;
}

/*
 * Called once, when the library is loaded.
 */
void
sequence_init(void)
{
	HASHCTL		ctl;

	ctl.keysize = sizeof(Oid);
	ctl.entrysize = sizeof(SequenceState);
	sequences = hash_create("snowflake sequences", 16, &ctl,
							HASH_ELEM | HASH_BLOBS);

	CacheRegisterRelcacheCallback(invalidate_relation, (Datum) 0);
	CacheRegisterSyscacheCallback(PROCOID, forget_default, (Datum) 0);
}

pg_noreturn static void
report_missing_relation(Oid relid)
{
	ereport(ERROR,
			(errcode(ERRCODE_UNDEFINED_TABLE),
			 errmsg("sequence with OID %u does not exist", relid)));
}

SequenceState *
sequence_find_slow(Oid relid)
{
	SequenceState *seq = hash_search(sequences, &relid, HASH_FIND, NULL);

	if (seq == NULL)
	{
		/* OIDs that a caller makes up must not fill the memory. */
		AcceptInvalidationMessages();
		if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(relid)))
			report_missing_relation(relid);

		seq = hash_search(sequences, &relid, HASH_ENTER, NULL);
		memset(seq, 0, sizeof(SequenceState));
		seq->relid = relid;
		seq->lxid = InvalidLocalTransactionId;
	}
	sequence_last_used = seq;
	return seq;
}

/*
 * Does a sequence belong to this extension?
 *
 * ALTER EXTENSION sends no invalidation of a relation, but like any change of
 * pg_depend it does send a message.  So the last answer is good until this
 * backend receives a message of any kind.  A transaction's own changes are sent
 * when it commits.  So in a transaction that may have made some, because it has
 * an ID, the answer is neither used nor kept.
 */
bool
sequence_owned_by_extension(Oid relid)
{
	static Oid	last_relid = InvalidOid;
	static uint64 last_message;
	static bool last_answer;
	uint64		message = SharedInvalidMessageCounter;
	bool		changes = TransactionIdIsValid(GetTopTransactionIdIfAny());
	Oid			extension;
	bool		answer;

	if (relid == last_relid && message == last_message && !changes)
		return last_answer;

	extension = getExtensionOfObject(RelationRelationId, relid);
	answer = OidIsValid(extension) &&
		extension == get_extension_oid("snowflake", true);

	if (!changes)
	{
		last_relid = relid;
		last_message = message;
		last_answer = answer;
	}
	return answer;
}

/*
 * Find the sequence that came with next_id(), for sequence_default().  It is in
 * the function's own schema, whatever the search path, and belongs to the
 * extension, as another sequence may have its name.
 *
 * The answer is remembered until a function or a known sequence changes.  ALTER
 * EXTENSION ... DROP SEQUENCE changes neither, so next_id() goes on using a
 * sequence that has been taken out of the extension in sessions that have used
 * it before.  From its next transaction on, a role without a privilege on the
 * sequence is refused, because check_privileges() then asks again whether the
 * sequence is the extension's.
 */
Oid
sequence_default_slow(Oid function)
{
	Oid			schema = get_func_namespace(function);
	Oid			sequence = get_relname_relid("next_id_seq", schema);
	uint64		changes;

	if (!OidIsValid(sequence) || !sequence_owned_by_extension(sequence))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("sequence %s of the extension does not exist",
						quote_qualified_identifier(get_namespace_name(schema),
												   "next_id_seq")),
				 errhint("Give next_id() its sequence as the second argument.")));

	/*
	 * From here on changes of the sequence are noticed, too.  Remember the
	 * answer if it is still the same, and stays so while we look.
	 */
	(void) sequence_find(sequence);
	changes = function_changes + sequence_invalidations;
	if (get_relname_relid("next_id_seq",
						  get_func_namespace(function)) == sequence &&
		function_changes + sequence_invalidations == changes)
	{
		Oid		   *functions = default_sequence.functions;

		if (default_sequence.invalidations != sequence_invalidations ||
			default_sequence.sequence != sequence)
			memset(functions, 0, sizeof(default_sequence.functions));
		memmove(functions + 1, functions,
				sizeof(default_sequence.functions) - sizeof(Oid));
		functions[0] = function;
		default_sequence.invalidations = sequence_invalidations;
		default_sequence.sequence = sequence;
	}
	return sequence;
}

/*
 * The MAXVALUE of a sequence, or 0 if the relation is no sequence.  It can change
 * at any time, unless the caller has locked the sequence.
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

static bool
same_spec(const TickSpec *a, const TickSpec *b)
{
	return a->epoch == b->epoch && a->tick_usecs == b->tick_usecs &&
		a->slots == b->slots && a->max_value == b->max_value &&
		a->is_default == b->is_default && a->needs_update == b->needs_update;
}

static char *
qualified_name(Oid relid)
{
	return quote_qualified_identifier(get_namespace_name(get_rel_namespace(relid)),
									  get_rel_name(relid));
}

/*
 * What a caller can do about a sequence that does not serve a layout.
 *
 * snowflake_alter_sequence() is right for a sequence whose numbers nothing else
 * needs.  A column that owns the sequence does need them, and would get numbers
 * that are no IDs, or are larger than it can hold.
 */
static char *
hint_to_alter(Oid relid, const char *layout)
{
	Oid			table;
	int32		column;

	if (sequenceIsOwned(relid, DEPENDENCY_INTERNAL, &table, &column))
		return psprintf("Use another sequence, as this one belongs to identity column \"%s\" of table \"%s\".",
						get_attname(table, column, false),
						get_rel_name(table));

	if (sequenceIsOwned(relid, DEPENDENCY_AUTO, &table, &column))
	{
		char	   *column_name = get_attname(table, column, false);
		Oid			type = get_atttype(table, column);
		Oid			base_type = getBaseType(type);

		if (base_type == INT2OID || base_type == INT4OID)
			return psprintf("Use another sequence, as this one belongs to column \"%s\" of table \"%s\", whose type %s cannot hold IDs.",
							column_name, get_rel_name(table),
							format_type_be(type));
		return psprintf("The sequence belongs to column \"%s\" of table \"%s\". To put IDs into that column, use SELECT snowflake_alter_sequence(%s, %s) and make next_id() the column's default. Otherwise use another sequence.",
						column_name, get_rel_name(table),
						quote_literal_cstr(qualified_name(relid)),
						quote_literal_cstr(layout));
	}

	return psprintf("If nothing else takes numbers from it, its owner can use SELECT snowflake_alter_sequence(%s, %s).",
					quote_literal_cstr(qualified_name(relid)),
					quote_literal_cstr(layout));
}

/*
 * Report that a sequence's owner has not chosen it for this spec.
 */
pg_noreturn static void
refuse_spec(SequenceState *seq, const TickSpec *spec)
{
	char	   *name = get_rel_name(seq->relid);
	const char *served = layout_of_max_value(seq->max_value);

	if (served != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot make IDs of layout \"%s\" from sequence \"%s\"",
						spec->layout, name),
				 errdetail("The sequence serves layout \"%s\".", served),
				 errhint("Name layout \"%s\" in the call, or use another sequence.",
						 served)));

	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("cannot make IDs of layout \"%s\" from sequence \"%s\"",
					spec->layout, name),
			 errdetail("The sequence has MAXVALUE %lld, but a sequence for this layout has MAXVALUE %lld.",
					   (long long) seq->max_value,
					   (long long) spec->max_value),
			 errhint("%s", hint_to_alter(seq->relid, spec->layout))));
}

/*
 * Check that a sequence's owner has chosen it for this spec.
 */
static void
check_spec(SequenceState *seq, const TickSpec *spec)
{
	if (!spec->is_default && sequence_owned_by_extension(seq->relid))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot make IDs of layout \"%s\" from sequence \"%s\"",
						spec->layout, get_rel_name(seq->relid)),
				 errdetail("The extension's own sequence serves layout \"instagram\" only."),
				 errhint("Use CREATE SEQUENCE and snowflake_alter_sequence() to make a sequence for this layout, and name it in the call.")));

	if (seq->max_value != spec->max_value)
		refuse_spec(seq, spec);
}

/*
 * Open a locked relation that is a sequence.
 */
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

/*
 * All sessions must share the sequence, and a crash must not reset it.
 */
static void
check_persistence(Relation rel)
{
	if (rel->rd_rel->relpersistence == RELPERSISTENCE_TEMP)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot make IDs from sequence \"%s\"",
						RelationGetRelationName(rel)),
				 errdetail("The sequence is temporary."),
				 errhint("Use a sequence that all sessions share and that outlives them.")));
	if (rel->rd_rel->relpersistence == RELPERSISTENCE_UNLOGGED)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot make IDs from sequence \"%s\"",
						RelationGetRelationName(rel)),
				 errdetail("The sequence is unlogged and would repeat IDs after a crash."),
				 errhint("Use ALTER SEQUENCE %s SET LOGGED.", qualified_name(RelationGetRelid(rel)))));
}

/*
 * Values must come one by one, in order and once.
 */
static void
check_parameters(Relation rel, Form_pg_sequence form, const TickSpec *spec)
{
	char	   *detail;

	if (form->seqtypid != INT8OID)
		detail = psprintf("The sequence is of type %s, which is too small.",
						  format_type_be(form->seqtypid));
	else if (form->seqincrement != 1)
		detail = psprintf("The sequence has INCREMENT %lld.",
						  (long long) form->seqincrement);
	else if (form->seqcache != 1)
		detail = psprintf("The sequence has CACHE %lld, and sessions that keep values back would return IDs out of order.",
						  (long long) form->seqcache);
	else if (form->seqcycle)
		detail = pstrdup("The sequence has CYCLE and would repeat IDs.");
	else
		return;

	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("cannot make IDs from sequence \"%s\"",
					RelationGetRelationName(rel)),
			 errdetail_internal("%s", detail),
			 errhint("%s", hint_to_alter(RelationGetRelid(rel), spec->layout))));
}

/*
 * Read what the catalogs say of a locked sequence, and check that it can be
 * used for this spec.
 */
static void
load_sequence(SequenceState *seq, Relation rel, const TickSpec *spec,
			  uint64 invalidations)
{
	HeapTuple	tuple;
	Form_pg_sequence form;

	check_persistence(rel);

	tuple = SearchSysCache1(SEQRELID, ObjectIdGetDatum(seq->relid));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for sequence %u", seq->relid);
	form = (Form_pg_sequence) GETSTRUCT(tuple);

	if (!RelFileLocatorEquals(seq->file, RelationFileLocator(rel)))
		seq->record_lsn = InvalidXLogRecPtr;
	seq->file = RelationFileLocator(rel);
	seq->new_file = rel->rd_createSubid != InvalidSubTransactionId ||
		RelationFirstFileSubid(rel) != InvalidSubTransactionId;
	seq->needs_wal = RelationNeedsWAL(rel);
	seq->max_value = form->seqmax;

	check_spec(seq, spec);
	check_parameters(rel, form, spec);
	seq->spec = *spec;
	seq->loaded = invalidations;

	ReleaseSysCache(tuple);
}

/*
 * Check the current role's privileges: those that nextval() or setval() asks
 * for, or also SELECT to look at the sequence.
 *
 * Everyone who may call next_id() may take values of the extension's own
 * sequence through it, and look at it, but not set it.
 */
static void
check_privileges(SequenceState *seq, const TickSpec *spec, SequenceUse use)
{
	AclMode		mode = ACL_USAGE | ACL_UPDATE | ACL_SELECT;

	if (use == SEQUENCE_SET || (use == SEQUENCE_TAKE && spec->needs_update))
		mode = ACL_UPDATE;
	else if (use == SEQUENCE_TAKE)
		mode = ACL_USAGE | ACL_UPDATE;

	if (pg_class_aclcheck(seq->relid, GetUserId(), mode) != ACLCHECK_OK &&
		(use == SEQUENCE_SET || !sequence_owned_by_extension(seq->relid)))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied for sequence %s",
						get_rel_name(seq->relid)),
				 mode != ACL_UPDATE || use == SEQUENCE_SET ? 0 :
				 errdetail("A layout without a name needs UPDATE, as another one could push the sequence years ahead."),
				 errhint("The sequence's owner can GRANT %s ON SEQUENCE.",
						 (mode & ACL_USAGE) ? "USAGE" : "UPDATE")));
}

/*
 * Check a locked sequence: that the current role may use it, and that the
 * sequence serves the spec.
 *
 * Privileges are checked before anything else is read or reported.
 */
static void
check_locked_sequence(SequenceState *seq, const TickSpec *spec, SequenceUse use)
{
	uint64		invalidations = sequence_invalidations;
	Relation	rel = NULL;

	if (seq->loaded != invalidations)
	{
		seq->loaded = 0;
		seq->taker = InvalidOid;
		rel = open_locked_relation(seq->relid);
	}

	/* Another spec may need more. */
	if (use != SEQUENCE_TAKE || seq->taker != GetUserId() ||
		!same_spec(&seq->spec, spec))
		check_privileges(seq, spec, use);

	if (rel != NULL)
	{
		load_sequence(seq, rel, spec, invalidations);
		relation_close(rel, NoLock);
	}
	else if (!same_spec(&seq->spec, spec))
		check_spec(seq, spec);

	seq->spec = *spec;
	seq->taker = use == SEQUENCE_TAKE ? GetUserId() : InvalidOid;
}

/*
 * A file that an earlier transaction made needs WAL from now on, and its records
 * have to follow that transaction's commit.  Nothing sends an invalidation for
 * that.
 */
static void
forget_new_file(SequenceState *seq)
{
	if (seq->new_file)
	{
		seq->loaded = 0;
		seq->record_lsn = InvalidXLogRecPtr;
	}
}

/*
 * Lock a sequence for this transaction.
 *
 * The lock is the one that nextval() takes, and is held until the transaction
 * ends, too.  It belongs to the top transaction, as the rollback of a
 * subtransaction would otherwise release what this backend believes to hold.
 */
static void
lock_sequence(SequenceState *seq)
{
	if (seq->lxid != MyLocalTransactionId)
	{
		ResourceOwner owner = CurrentResourceOwner;

		CurrentResourceOwner = TopTransactionResourceOwner;
		LockRelationOid(seq->relid, RowExclusiveLock);
		CurrentResourceOwner = owner;

		forget_new_file(seq);
		seq->taker = InvalidOid;
		seq->lxid = MyLocalTransactionId;
	}
}

/*
 * For sequence_lock_max_value(), if this is the transaction's first use of the sequence, or
 * its catalog entries have to be read again.
 */
int64
sequence_lock_max_value_slow(SequenceState *seq)
{
	lock_sequence(seq);
	if (seq->loaded == sequence_invalidations)
		return seq->max_value;
	return sequence_read_max_value(seq->relid);
}

/*
 * Lock a sequence and check that the current role may use it for this spec.
 */
void
sequence_lock_and_check(SequenceState *seq, const TickSpec *spec, SequenceUse use)
{
	lock_sequence(seq);
	check_locked_sequence(seq, spec, use);
}

/*
 * Lock a sequence for a look at it, and check that the current role may have
 * one.  Returns false if another session has locked the sequence and the caller
 * does not want to wait.  sequence_unlock_after_look() releases the lock, so that a
 * look at all sequences of a database does not fill the table of locks.  If an
 * error is raised instead, the rollback of the transaction or subtransaction
 * releases it.
 */
bool
sequence_lock_to_look(SequenceState *seq, const TickSpec *spec, bool wait)
{
	if (wait)
		LockRelationOid(seq->relid, RowExclusiveLock);
	else if (!ConditionalLockRelationOid(seq->relid, RowExclusiveLock))
		return false;

	/* sequence_lock_and_check() does this in a transaction that takes values. */
	if (seq->lxid != MyLocalTransactionId)
		forget_new_file(seq);
	check_locked_sequence(seq, spec, SEQUENCE_LOOK);
	return true;
}

void
sequence_unlock_after_look(SequenceState *seq)
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
	 * A role that does not own the sequence must not make others wait for it.
	 * This lock does not, but keeps the owner from changing.
	 */
	LockRelationOid(relid, AccessShareLock);
	rel = open_locked_relation(relid);

	if (!OwnsRelation(relid, GetUserId()))
		aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_SEQUENCE,
					   RelationGetRelationName(rel));

	LockRelationOid(relid, ShareRowExclusiveLock);

	check_persistence(rel);

	if (sequenceIsOwned(relid, DEPENDENCY_INTERNAL, &table, &column))
	{
		char	   *column_name = get_attname(table, column, false);
		char	   *table_name = qualified_name(table);

		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot make IDs from sequence \"%s\"",
						RelationGetRelationName(rel)),
				 errdetail("The sequence belongs to identity column \"%s\" of table \"%s\".",
						   column_name, get_rel_name(table)),
				 errhint("Use ALTER TABLE %s ALTER COLUMN %s DROP IDENTITY, which drops the sequence as well, then set a default of next_id() with another sequence.",
						 table_name, quote_identifier(column_name))));
	}

	*max_value = sequence_read_max_value(relid);
	name = qualified_name(RelationGetRelid(rel));
	relation_close(rel, NoLock);
	return name;
}
