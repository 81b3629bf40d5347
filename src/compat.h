/*-------------------------------------------------------------------------
 *
 * compat.h
 *	  What differs between the PostgreSQL versions that it can be built for.
 *
 * Include it after PostgreSQL's own headers and before this extension's.  No
 * other file of this extension looks at PG_VERSION_NUM.  The version of the
 * server that runs matters only to wait.c, which asks for it.
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_COMPAT_H
#define SNOWFLAKE_COMPAT_H

/*
 * Versions before 15 and after 19 are refused.  If a later version logs a
 * sequence's page in another way than with the records of PostgreSQL's
 * sequence.c, IDs could be repeated after a crash.  CONTRIBUTING.md says what
 * to look for before a new version is added here.
 */
#if PG_VERSION_NUM < 150000 || PG_VERSION_NUM >= 200000
#error "snowflake supports PostgreSQL 15 to 19"
#endif

/* 16 renamed RelFileNode, and the members of structures that hold one. */
#if PG_VERSION_NUM >= 160000
#include "storage/relfilelocator.h"
#define SeqRecordLocator(rec)		((rec).locator)
#define RelationFileLocator(rel)	((rel)->rd_locator)
#define RelationFirstFileSubid(rel)	((rel)->rd_firstRelfilelocatorSubid)
#else
#include "storage/relfilenode.h"
typedef RelFileNode RelFileLocator;
#define RelFileLocatorEquals(a, b)	RelFileNodeEquals(a, b)
#define SeqRecordLocator(rec)		((rec).node)
#define RelationFileLocator(rel)	((rel)->rd_node)
#define RelationFirstFileSubid(rel)	((rel)->rd_firstRelfilenodeSubid)
#endif

/*
 * 16 has object_ownercheck() and object_aclcheck() in place of most functions
 * for one kind of object.  Those for tables and columns, as
 * pg_class_aclcheck(), have stayed.
 */
#if PG_VERSION_NUM >= 160000
#include "catalog/pg_database.h"
#define pg_class_ownercheck(relid, role) \
	object_ownercheck(RelationRelationId, relid, role)
#define pg_database_ownercheck(database, role) \
	object_ownercheck(DatabaseRelationId, database, role)
#define pg_proc_aclcheck(function, role, mode) \
	object_aclcheck(ProcedureRelationId, function, role, mode)
#endif

/* 16 lets a role be a member of another without being able to SET ROLE to it. */
#if PG_VERSION_NUM < 160000
#define member_can_set_role(member, role) is_member_of_role(member, role)
#endif

/*
 * 16 renamed pgstat_fetch_stat_local_beentry(), which gives a backend of the
 * local copy, counted from 1.
 */
#if PG_VERSION_NUM < 160000
#define pgstat_get_local_beentry_by_index(index) \
	pgstat_fetch_stat_local_beentry(index)
#endif

/* 17 numbers the status of backends by their PGPROC, not by a backend ID. */
#if PG_VERSION_NUM >= 170000
#define BackendStatus(number)		(MyBEEntry - MyProcNumber + (number))
#else
#define BackendStatus(number)		(MyBEEntry - (MyBackendId - 1) + (number))
#endif

/* 16 moved the macros for varlena values out of postgres.h. */
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

/* 16 lets input functions report errors without raising them. */
#if PG_VERSION_NUM >= 160000
#include "nodes/miscnodes.h"
#else
#define ereturn(context, dummy_value, ...)	ereport(ERROR, __VA_ARGS__)
#endif

/*
 * 17 moved the local transaction ID within PGPROC, has the virtual transaction
 * ID of a lock's holder in one member, and lets extensions name their wait
 * events.
 */
#if PG_VERSION_NUM >= 170000
#define MyLocalTransactionId		(MyProc->vxid.lxid)
#define LockHolder(instance)		((instance)->vxid)
#else
#define MyLocalTransactionId		(MyProc->lxid)
#define LockHolder(instance) \
	((VirtualTransactionId) {(instance)->backend, (instance)->lxid})
#define WaitEventExtensionNew(name) PG_WAIT_EXTENSION
#endif

/*
 * 17 has a function that says whether a page is dirty.  In earlier versions, a
 * bit of the buffer's state says it, which is what that function looks at.
 */
#if PG_VERSION_NUM < 170000
#include "storage/buf_internals.h"
#define BufferIsDirty(buffer) \
	((pg_atomic_read_u32(&GetBufferDescriptor((buffer) - 1)->state) & \
	  BM_DIRTY) != 0)
#endif

/*
 * 18 lets a module give its name and version, and replaced
 * pg_attribute_noreturn() by pg_noreturn.
 */
#if PG_VERSION_NUM < 180000
#define PG_MODULE_MAGIC_EXT(...)	PG_MODULE_MAGIC
#define pg_noreturn					pg_attribute_noreturn()
#endif

/*
 * The byte of shared memory that says whether synchronous_standby_names asks
 * for standbys.  15.13, 16.9 and 17.5 renamed it, and gave it a second flag.
 * This is for files that include "replication/walsender_private.h".
 */
#ifdef SYNC_STANDBY_DEFINED
#define SyncStandbysByte	(WalSndCtl->sync_standbys_status)
#else
#define SyncStandbysByte	(WalSndCtl->sync_standbys_defined)
#endif

/*
 * The format of a sequence's page has long been the same, but only from 19 on
 * is it in a header.
 */
#if PG_VERSION_NUM >= 190000
#include "commands/sequence_xlog.h"
#else
#define SEQ_MAGIC	0x1717

typedef struct sequence_magic
{
	uint32		magic;
} sequence_magic;
#endif

#endif							/* SNOWFLAKE_COMPAT_H */
