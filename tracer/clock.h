/*
 * clock: time that only goes forward, and what a process has used of a processor (0 once it is
 * gone).
 */
#pragma once

#include <stdint.h>
#include <time.h>

static inline int64_t clock_ns_of(clockid_t id)
{
	struct timespec t = {0};
	clock_gettime(id, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static inline int64_t clock_ns(void)
{
	return clock_ns_of(CLOCK_MONOTONIC);
}

static inline int64_t clock_us(void)
{
	return clock_ns() / 1000;
}

static inline int64_t clock_ms(void)
{
	return clock_ns() / 1000000;
}
