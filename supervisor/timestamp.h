/*
 * timestamp: times as reports, events and the audit write them: RFC 3339, UTC, milliseconds.
 */
#pragma once

#include <time.h>

#define TIMESTAMP_LEN 32 /* "2025-01-31T23:59:59.123Z" and NUL, with room for odd years */

/* t is of CLOCK_REALTIME. Both return ret. */
const char *timestamp_format(const struct timespec *t, char ret[TIMESTAMP_LEN]);
const char *timestamp_now(char ret[TIMESTAMP_LEN]);
