/*
 * doctor: can this machine supervise? One finding a probe, each of something that was really done.
 *
 * Probes run in the caller's process where they only read, and in children where they do what can't
 * be undone. They block for what they measure, each child with a limit of its own.
 */
#pragma once

#include "tracer/json.h"
#include "tracer/sites.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum doctor_status {
	DOCTOR_OK,
	DOCTOR_DEGRADED, /* it works, with less: `what` says with what less */
	DOCTOR_MISSING,
};

struct doctor_finding {
	const char *probe; /* static */
	enum doctor_status status;
	bool vital;	 /* if it is missing, nothing can be supervised */
	char *what;	 /* owned: what was found, one clause */
	char *fix;	 /* owned: what to do, or NULL */
	int64_t took_us; /* what was done took this long; -1: nothing was done */
};

/* A library or program of this machine, and where it makes the calls that are watched. */
struct doctor_file {
	char *path, *name; /* owned: where it lies, and what it is called by */
	struct sites sites;
};

struct doctor {
	char *const *env; /* a loan */
	struct doctor_finding *finding;
	size_t len;
	struct doctor_file *file; /* owned: what the probe `sites` looked at */
	size_t files;
	bool failed; /* no memory: a finding is missing */
};

/* Every probe of doctor.def, in that order. */
void doctor_examine(struct doctor *d);
void doctor_release(struct doctor *d);

/*
 * Add a finding; the probe's name is static. `what` is a format; a fix and a time can be given to
 * the finding just made (returned; never NULL, good until the next one).
 */
struct doctor_finding *doctor_find(struct doctor *d, const char *probe, enum doctor_status status,
				   const char *what, ...) __attribute__((format(printf, 4, 5)));
void doctor_fix(struct doctor *d, struct doctor_finding *f, const char *fix, ...)
	__attribute__((format(printf, 3, 4)));

/* Nothing vital is missing. */
bool doctor_supervises(const struct doctor *d);
/*
 * For people: a line a finding, its fix below it; of a terminal of so many columns (0: any) several
 * where one is too short.
 */
void doctor_write(const struct doctor *d, bool color, size_t columns, struct buf *out);
/*
 * One object: {"warder_doctor":1, "version", "supervises", "probes":[...], "files":[...]}; of a
 * file its "path", "calls", "can", "room", "others" (tracer/sites.h), and in "slow" each place that
 * can't be changed, as {"offset", "call"}.
 */
void doctor_write_json(const struct doctor *d, struct buf *out);
