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
	slock_t		mutex;
	RelFileLocator file;
	XLogRecPtr	lsn;			/* end of the last record written for it */
} LoggedFile;

/*
 * A file has one place, which it may lose to another file.  Then backends write
 * their own records again.
 */
#define LOGGED_FILES	1024

static LoggedFile *logged_files = NULL;

static shmem_request_hook_type previous_request_hook;
static shmem_startup_hook_type previous_startup_hook;


static void
request_memory(void)
{
	if (previous_request_hook)
		previous_request_hook();
	RequestAddinShmemSpace(LOGGED_FILES * sizeof(LoggedFile));
}

static void
set_up_memory(void)
{
	bool		found;

	if (previous_startup_hook)
		previous_startup_hook();

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	logged_files = ShmemInitStruct("snowflake logged files",
								   LOGGED_FILES * sizeof(LoggedFile), &found);
	if (!found)
	{
		MemSet(logged_files, 0, LOGGED_FILES * sizeof(LoggedFile));
		for (int i = 0; i < LOGGED_FILES; i++)
			SpinLockInit(&logged_files[i].mutex);
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

static LoggedFile *
place_of(const RelFileLocator *file)
{
	uint32		hash = hash_bytes((const unsigned char *) file,
								  sizeof(RelFileLocator));

	return &logged_files[hash % LOGGED_FILES];
}

/*
 * Note the record that this backend has written for a file.
 */
void
shared_note_logged(const RelFileLocator *file, XLogRecPtr lsn)
{
	LoggedFile *place;

	if (logged_files == NULL)
		return;

	place = place_of(file);
	SpinLockAcquire(&place->mutex);
	place->file = *file;
	place->lsn = lsn;
	SpinLockRelease(&place->mutex);
}

/*
 * Did a backend write, for this file, the record to which a page owes its LSN?
 */
bool
shared_is_logged(const RelFileLocator *file, XLogRecPtr lsn)
{
	LoggedFile *place;
	bool		logged;

	if (logged_files == NULL)
		return false;

	place = place_of(file);
	SpinLockAcquire(&place->mutex);
	logged = RelFileLocatorEquals(place->file, *file) && place->lsn == lsn;
	SpinLockRelease(&place->mutex);
	return logged;
}
