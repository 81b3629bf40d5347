/*
 * clock.c
 *	  A clock that can be set while a program runs, as the file that $CLOCK_FILE names says.
 *
 * The file has one number: twice the microseconds by which the clock is ahead of the true one,
 * or twice those since 1970, at which it stands still, plus one.
 *
 * Preloaded into a server.  The handler of a timeout looks at the clock in the middle of
 * anything, so nothing here takes a lock, allocates memory or reads the file, as libfaketime
 * does.  Timeouts and sleeps, which measure spans, keep the true clock.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *setting;

__attribute__((constructor)) static void
map_file(void)
{
	const char *path = getenv("CLOCK_FILE");
	int			fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void	   *page = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);

	if (page != MAP_FAILED)
		setting = page;
	if (fd >= 0)
		close(fd);
}

int
clock_gettime(clockid_t clock, struct timespec *ts)
{
	int			result = syscall(SYS_clock_gettime, clock, ts);

	if (result == 0 && setting && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
	{
		int64_t		set = *setting;
		int64_t		us = set >> 1;

		if (!(set & 1))
			us += ts->tv_sec * INT64_C(1000000) + ts->tv_nsec / 1000;
		ts->tv_sec = us / 1000000;
		ts->tv_nsec = us % 1000000 * 1000;
	}
	return result;
}

int
gettimeofday(struct timeval *tv, void *zone __attribute__((unused)))
{
	struct timespec ts;
	int			result = clock_gettime(CLOCK_REALTIME, &ts);

	tv->tv_sec = ts.tv_sec;
	tv->tv_usec = ts.tv_nsec / 1000;
	return result;
}

time_t
time(time_t *result)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	if (result)
		*result = ts.tv_sec;
	return ts.tv_sec;
}
