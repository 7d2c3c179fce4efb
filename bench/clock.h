/* clock: the time, as measurements take it. */
#pragma once

#include <time.h>

static inline double clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}
