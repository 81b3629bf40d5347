/*-------------------------------------------------------------------------
 *
 * shared.c
 *	  What backends tell each other of their WAL records.
 *
 * At its first touch of a file, a backend cannot know whether the log_cnt on
 * the page counts values that a WAL record of this file covers, or came with a
 * copy of another file's page.  So the backend would have to write and flush a
 * record of its own.  If an application opens a connection for each ID, then
 * each ID would wait for the disk.
 *
 * To avoid that, a backend that writes a record for a file notes the file and
 * the record's LSN here.  If another backend finds the page's file and LSN
 * here, it knows that log_cnt on the page counts values that this record
 * covers.
 *
 * Two other pages could be mistaken for that page, but are not.  A copy of the
 * page has the same LSN, but usually it is in another file.  It can be in a file
 * of the same number if a database is moved to another tablespace and back, or
 * is created with the OID of a dropped one.  These commands begin with a
 * checkpoint, after which put_value() in generator.c writes a record whatever
 * is noted here.  A new file can get the number of a dropped one, but its page
 * has another LSN.  An LSN can come again only after a crash, which ends the
 * shared memory.
 *
 * PostgreSQL 15 and 16 have shared memory only for libraries that are
 * preloaded.  Without it nothing is found here, and each backend writes its
 * own records.
 *
 * This file does not read pages and writes no WAL.
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/shmem.h"
#include "storage/spin.h"
#include "utils/resowner.h"

#include "compat.h"

#include "shared.h"

typedef struct FileRecord
{
	RelFileLocator file;
	XLogRecPtr	lsn;			/* end of the last record written for it */
} FileRecord;

/*
 * The memory is a table of sets.  A file belongs to one set, by its hash, and
 * has one of the set's places when a record was noted for it.
 *
 * If all places of a set are taken, a new file takes the place of another one.
 * Backends that use that other file then write records of their own, which
 * takes the place of a third file, and so on.  Only a server with thousands of
 * busy sequences has that many files in a set.
 */
#define PLACES		8
#define SETS		1024

typedef struct FileRecordSet
{
	slock_t		mutex;
	FileRecord	places[PLACES];
} FileRecordSet;

/*
 * After an update, sessions with the old and with the new version of the
 * library run at the same time.  So a version that changes the structures
 * above, or what they mean, must take another name.
 */
#define MEMORY_NAME	"snowflake logged files 1"
#define MEMORY_SIZE	(SETS * sizeof(FileRecordSet))

static FileRecordSet *sets = NULL;

static bool preloaded = false;
static shmem_request_hook_type previous_request_hook;


static void
reserve_memory(void)
{
	if (previous_request_hook)
		previous_request_hook();
	RequestAddinShmemSpace(MEMORY_SIZE);
}

static void
fill_memory(NewMemory(memory))
{
	FileRecordSet *new_sets = memory;

	MemSet(new_sets, 0, MEMORY_SIZE);
	for (int i = 0; i < SETS; i++)
		SpinLockInit(&new_sets[i].mutex);
}

/*
 * Called once, when the library is loaded.
 */
void
shared_init(void)
{
	preloaded = process_shared_preload_libraries_in_progress;

	if (SHARED_MEMORY_NEEDS_PRELOADING && preloaded)
	{
		previous_request_hook = shmem_request_hook;
		shmem_request_hook = reserve_memory;
	}
}

/*
 * Find the memory, or make it, before this backend takes its first value.  The
 * caller holds no lock on a page and is not in a critical section, because
 * this allocates memory and can fail.
 *
 * A failure must not keep rows from being inserted.  A server may lack space
 * for shared memory for a while, as in a container whose /dev/shm is small,
 * and early releases of 17 then refuse the memory until they are restarted.
 * So the backend goes on without shared memory.  It does not try again later,
 * so that it goes by one of the two rules of find_record() in generator.c for
 * as long as it lives.  The subtransaction is there to release the locks that
 * the failed attempt took.
 */
void
shared_attach(void)
{
	static bool tried = false;
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;

	if (likely(tried))
		return;
	tried = true;
	if (SHARED_MEMORY_NEEDS_PRELOADING && !preloaded)
		return;

	BeginInternalSubTransaction(NULL);
	PG_TRY();
	{
		sets = SharedMemory(MEMORY_NAME, MEMORY_SIZE, fill_memory);
		ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		ErrorData  *error;

		/*
		 * The error is not that the query was canceled, because nothing in the
		 * attempt obeys interrupts.
		 */
		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		ereport(LOG,
				(errcode(error->sqlerrcode),
				 errmsg("next_id() cannot use shared memory in this session: %s",
						error->message),
				 errdetail("The session's first call for each sequence writes a WAL record and waits until it is on disk.")));
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
}

static FileRecordSet *
find_set(const RelFileLocator *file)
{
	uint32		hash = hash_bytes((const unsigned char *) file,
								  sizeof(RelFileLocator));

	return &sets[hash % SETS];
}

bool
shared_is_available(void)
{
	return sets != NULL;
}

/*
 * Note that this backend has written the record with this LSN for a file.
 */
void
shared_note_record(const RelFileLocator *file, XLogRecPtr lsn)
{
	FileRecordSet *set;
	FileRecord *place;

	if (!shared_is_available())
		return;

	set = find_set(file);
	SpinLockAcquire(&set->mutex);

	/* Take the file's own place, or the one with the oldest record. */
	place = &set->places[0];
	for (int i = 0; i < PLACES; i++)
	{
		if (RelFileLocatorEquals(set->places[i].file, *file))
		{
			place = &set->places[i];
			break;
		}
		if (set->places[i].lsn < place->lsn)
			place = &set->places[i];
	}
	place->file = *file;
	place->lsn = lsn;

	SpinLockRelease(&set->mutex);
}

/*
 * Did any backend note that it wrote the record with this LSN for this file?
 */
bool
shared_has_record(const RelFileLocator *file, XLogRecPtr lsn)
{
	FileRecordSet *set;
	bool		found = false;

	if (!shared_is_available())
		return false;

	set = find_set(file);
	SpinLockAcquire(&set->mutex);
	for (int i = 0; i < PLACES && !found; i++)
		found = set->places[i].lsn == lsn &&
			RelFileLocatorEquals(set->places[i].file, *file);
	SpinLockRelease(&set->mutex);
	return found;
}
