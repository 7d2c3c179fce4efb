#include "supervisor/timestamp.h"

#include <stdio.h>

const char *timestamp_format(const struct timespec *t, char ret[TIMESTAMP_LEN])
{
	struct tm tm = {0};
	gmtime_r(&t->tv_sec, &tm);
	size_t n = strftime(ret, TIMESTAMP_LEN - 5, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(ret + n, TIMESTAMP_LEN - n, ".%03uZ", (unsigned)(t->tv_nsec / 1000000) % 1000);
	return ret;
}

const char *timestamp_now(char ret[TIMESTAMP_LEN])
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return timestamp_format(&now, ret);
}
