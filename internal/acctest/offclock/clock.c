// A shifted clock: ahead by the seconds in the file SAYS when the program starts.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static time_t off;

__attribute__((constructor)) static void learn(void)
{
	char text[32] = "";
	int file = open(SAYS, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return;
	if (read(file, text, sizeof text - 1) > 0)
		off = atol(text);
	close(file);
}

int clock_gettime(clockid_t clock, struct timespec *at)
{
	int failed = syscall(SYS_clock_gettime, clock, at);
	if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
		at->tv_sec += off;
	return failed;
}

int gettimeofday(struct timeval *at, void *zone)
{
	int failed = syscall(SYS_gettimeofday, at, zone);
	if (!failed)
		at->tv_sec += off;
	return failed;
}

time_t time(time_t *at)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	if (at)
		*at = now.tv_sec;
	return now.tv_sec;
}
