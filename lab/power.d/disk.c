/*-------------------------------------------------------------------------
 *
 * disk.c
 *	  A disk that forgets what was not flushed when its power is cut.
 *
 * A plugin of nbdkit.  What the virtual machine writes stays in memory until
 * the machine flushes it, or asks for that with the write (FUA).  When the
 * connection ends, the power is out: of what was not flushed, some writes,
 * or sectors of them reach the image and others do not, as the mode says.
 *
 *	none	nothing that was not flushed
 *	all		everything
 *	first	the first writes; the last of these may be torn
 *	writes	each write with some probability
 *	sectors	each 512 bytes with some probability
 *
 * A random moment is seldom that of a flush, so once the file "cut" is there,
 * the disk itself cuts the power: it kills the machine when it is asked to
 * flush, when it has flushed but not said so, or after it has said so.
 *
 * Knows nothing of file systems, of PostgreSQL, or of who makes the file.
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SECTOR	512

/* A write that was not flushed */
typedef struct Write
{
	uint64_t	offset;
	uint32_t	length;
	bool		durable;		/* the machine asked for FUA */
	uint8_t    *data;
} Write;

static const char *const modes[] = {"none", "all", "first", "writes", "sectors"};

static const char *image;
static const char *mode = "none";
static const char *cut;
static int	seed = 1;
static int	flush_usecs;		/* a flush takes up to so long */

static uint8_t *medium;			/* what survives */
static uint8_t *view;			/* what the machine reads */
static uint64_t size;
static Write *pending;
static size_t pending_count;
static size_t pending_room;
static unsigned long writes;
static unsigned long flushes;
static bool power_is_out;
static bool cut_at_next_request;

static int
disk_config(const char *key, const char *value)
{
	if (strcmp(key, "image") == 0)
		image = nbdkit_realpath(value);
	else if (strcmp(key, "mode") == 0)
	{
		mode = NULL;
		for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
			if (strcmp(modes[i], value) == 0)
				mode = modes[i];
		if (mode == NULL)
		{
			nbdkit_error("unknown mode \"%s\"", value);
			return -1;
		}
	}
	else if (strcmp(key, "cut") == 0)
		cut = nbdkit_absolute_path(value);
	else if (strcmp(key, "seed") == 0)
		return nbdkit_parse_int(key, value, &seed);
	else if (strcmp(key, "flush-usecs") == 0)
		return nbdkit_parse_int(key, value, &flush_usecs);
	else
	{
		nbdkit_error("unknown parameter \"%s\"", key);
		return -1;
	}
	return 0;
}

static int
disk_get_ready(void)
{
	struct stat status;
	int			file = image != NULL ? open(image, O_RDWR) : -1;

	if (file < 0 || fstat(file, &status) != 0)
	{
		nbdkit_error("could not open the image: %m");
		return -1;
	}
	size = status.st_size;
	medium = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	/* Where the machine has written nothing, this shows the medium. */
	view = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, file, 0);
	close(file);
	if (medium == MAP_FAILED || view == MAP_FAILED)
	{
		nbdkit_error("could not map \"%s\": %m", image);
		return -1;
	}
	srand(seed);
	return 0;
}

static void *
disk_open(int readonly)
{
	(void) readonly;
	return NBDKIT_HANDLE_NOT_NEEDED;
}

static int64_t
disk_get_size(void *handle)
{
	(void) handle;
	return size;
}

static int
disk_can_fua(void *handle)
{
	(void) handle;
	return NBDKIT_FUA_NATIVE;
}

static int
fail(void)
{
	nbdkit_set_error(EIO);
	return -1;
}

static void
cut_power(void)
{
	kill(nbdkit_peer_pid(), SIGKILL);
	power_is_out = true;
}

/*
 * Whether there is power for another request.
 */
static bool
has_power(void)
{
	if (cut_at_next_request)
		cut_power();
	return !power_is_out;
}

static int
disk_pread(void *handle, void *buffer, uint32_t count, uint64_t offset, uint32_t flags)
{
	(void) handle;
	(void) flags;
	if (!has_power())
		return fail();
	memcpy(buffer, view + offset, count);
	return 0;
}

static int
disk_pwrite(void *handle, const void *buffer, uint32_t count, uint64_t offset, uint32_t flags)
{
	uint8_t    *data = malloc(count);

	(void) handle;
	if (!has_power())
		return fail();
	if (pending_count == pending_room)
	{
		pending_room = pending_room * 2 + 1024;
		pending = realloc(pending, pending_room * sizeof(Write));
	}
	if (data == NULL || pending == NULL)
		abort();
	memcpy(data, buffer, count);
	pending[pending_count++] = (Write) {offset, count, (flags & NBDKIT_FLAG_FUA) != 0, data};
	memcpy(view + offset, buffer, count);
	writes++;
	return 0;
}

static int
disk_flush(void *handle, uint32_t flags)
{
	enum
	{
		BEFORE, BETWEEN, AFTER, NEVER
	}			when = NEVER;

	(void) handle;
	(void) flags;
	if (!has_power())
		return fail();
	flushes++;
	if (pending_count == 0)
		return 0;
	if (flush_usecs > 0)
		nbdkit_nanosleep(0, rand() % flush_usecs * 1000);
	if (cut != NULL && access(cut, F_OK) == 0)
		when = (int[]) {BEFORE, BEFORE, BEFORE, BEFORE, BEFORE, BEFORE, BETWEEN, AFTER}[rand() % 8];

	if (when == BEFORE)
	{
		cut_power();
		return fail();
	}
	for (size_t i = 0; i < pending_count; i++)
	{
		memcpy(medium + pending[i].offset, pending[i].data, pending[i].length);
		free(pending[i].data);
	}
	pending_count = 0;
	if (when == BETWEEN)
	{
		cut_power();
		return fail();
	}
	cut_at_next_request = when == AFTER;
	return 0;
}

/*
 * Whether a sector of an unflushed write reaches the medium.
 */
static bool
reaches_medium(size_t number, size_t chosen, int percent)
{
	static size_t decided = -1;
	static bool reaches;

	if (strcmp(mode, "all") == 0 || strcmp(mode, "none") == 0)
		return strcmp(mode, "all") == 0;
	if (strcmp(mode, "first") == 0)
		return number < chosen || (number == chosen && rand() % 2);
	/* One decision for all of a write, or for each of its sectors */
	if (number != decided || strcmp(mode, "sectors") == 0)
		reaches = rand() % 100 < percent;
	decided = number;
	return reaches;
}

/*
 * The power is out: some of what was not flushed is lost.
 */
static void
disk_close(void *handle)
{
	size_t		chosen = rand() % (pending_count + 1);
	int			percent = (int[]) {5, 20, 50, 80, 95}[rand() % 5];
	unsigned long sectors = 0;
	unsigned long lost = 0;

	(void) handle;
	for (size_t i = 0; i < pending_count; i++)
		for (uint32_t at = 0; at < pending[i].length; at += SECTOR)
		{
			uint64_t	offset = pending[i].offset + at;

			sectors++;
			if (pending[i].durable || reaches_medium(i, chosen, percent))
				memcpy(medium + offset, pending[i].data + at, SECTOR);
			else
				lost++;
		}
	fprintf(stderr, "disk: writes %lu flushes %lu cut %s, mode %s: writes %zu sectors %lu lost %lu\n",
			writes, flushes, power_is_out ? "at a flush" : "at any time", mode, pending_count, sectors, lost);
}

/* Requests come one at a time. */
#define THREAD_MODEL NBDKIT_THREAD_MODEL_SERIALIZE_ALL_REQUESTS

static struct nbdkit_plugin plugin = {
	.name = "disk",
	.config = disk_config,
	.get_ready = disk_get_ready,
	.open = disk_open,
	.close = disk_close,
	.get_size = disk_get_size,
	.can_fua = disk_can_fua,
	.pread = disk_pread,
	.pwrite = disk_pwrite,
	.flush = disk_flush,
};

NBDKIT_REGISTER_PLUGIN(plugin)
