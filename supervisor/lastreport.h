/*
 * lastreport: the last run's report, kept in the state directory for `warder why --last`.
 *
 * The directory is out of every command's reach; the file is written beside its name and renamed,
 * so that a reader sees a whole report.
 */
#pragma once

#include "supervisor/report.h"
#include "supervisor/store.h"

#define LASTREPORT_MAX (16u << 20)

/* Always redacted. 0 or -errno. */
int lastreport_save(const struct store *s, const struct report *r);
/* 0 and the object (json_free), -ENOENT: nothing was run yet, -EINVAL: it is none, -errno. */
int lastreport_load(const struct store *s, struct json **ret);
