/*-------------------------------------------------------------------------
 *
 * shared.c
 *	  What backends tell each other if the library is preloaded.
 *
 * A backend that uses a sequence's file for the first time cannot know whether
 * the count on its page is of WAL of that file, or came with a copy of another
 * one.  So it writes and flushes a record of its own.  Where each ID has a
 * connection of its own, each ID waits for the disk.
 *
 * With shared_preload_libraries = 'snowflake', a backend that writes a record
 * for a file notes the record's LSN here.  A page that still has that LSN has
 * the count that came with the record.  No other page can have it, even if the
 * file's name is used again, since an LSN belongs to one record.
 *
 * Without preloading there is no shared memory, and nothing is known.
 *
 * This file does not read pages and writes no WAL.
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "storage/spin.h"

#include "compat.h"

#include "shared.h"

typedef struct LoggedFile
{
	RelFileLocator file;
	XLogRecPtr	lsn;			/* end of the last record written for it */
} LoggedFile;

/*
 * A file has one of the places in its set, and may lose it to another file of
 * the set.  Backends that use the file then write records of their own, which
 * takes the place of a third file, and so on.  Sets are large enough that a
 * server needs thousands of busy sequences for that.
 */
#define PLACES		8
#define SETS		1024

typedef struct LoggedFileSet
{
	slock_t		mutex;
	LoggedFile	places[PLACES];
} LoggedFileSet;

static LoggedFileSet *sets = NULL;

static shmem_request_hook_type previous_request_hook;
static shmem_startup_hook_type previous_startup_hook;


static void
request_memory(void)
{
	if (previous_request_hook)
		previous_request_hook();
	RequestAddinShmemSpace(SETS * sizeof(LoggedFileSet));
}

static void
set_up_memory(void)
{
	bool		found;

	if (previous_startup_hook)
		previous_startup_hook();

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	sets = ShmemInitStruct("snowflake logged files",
						   SETS * sizeof(LoggedFileSet), &found);
	if (!found)
	{
		MemSet(sets, 0, SETS * sizeof(LoggedFileSet));
		for (int i = 0; i < SETS; i++)
			SpinLockInit(&sets[i].mutex);
	}
	LWLockRelease(AddinShmemInitLock);
}

/*
 * Called once, when the library is loaded.
 */
void
shared_init(void)
{
	if (!process_shared_preload_libraries_in_progress)
		return;

	previous_request_hook = shmem_request_hook;
	shmem_request_hook = request_memory;
	previous_startup_hook = shmem_startup_hook;
	shmem_startup_hook = set_up_memory;
}

static LoggedFileSet *
set_of(const RelFileLocator *file)
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
 * Note the record that this backend has written for a file.
 */
void
shared_note_logged(const RelFileLocator *file, XLogRecPtr lsn)
{
	LoggedFileSet *set;
	LoggedFile *place;

	if (!shared_is_available())
		return;

	set = set_of(file);
	SpinLockAcquire(&set->mutex);

	/* The file's own place, or that of the file that was logged longest ago */
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
 * Did a backend write, for this file, the record to which a page owes its LSN?
 */
bool
shared_is_logged(const RelFileLocator *file, XLogRecPtr lsn)
{
	LoggedFileSet *set;
	bool		logged = false;

	if (!shared_is_available())
		return false;

	set = set_of(file);
	SpinLockAcquire(&set->mutex);
	for (int i = 0; i < PLACES && !logged; i++)
		logged = set->places[i].lsn == lsn &&
			RelFileLocatorEquals(set->places[i].file, *file);
	SpinLockRelease(&set->mutex);
	return logged;
}
