/*
 * verdict: why a call was refused: by the sandbox, by the file's permissions, or by something else.
 *
 * EACCES alone says nothing: Landlock, the mode bits and other policies all answer with it. The
 * rule here: what the file's own permissions would refuse the tracee is `permissions`, whatever
 * Landlock thinks; of the rest, what our ruleset does not grant is `sandbox`; anything else is
 * `other`. A rename or link that got EXDEV between two mounts is `cross-device`.
 */
#pragma once

#include "landlock/llruleset.h"
#include "supervisor/access.h"
#include "supervisor/denial.h"
#include "supervisor/identity.h"

struct verdict_input {
	const struct call *call; /* resolved */
	struct call_view view;
	const struct identity *as;	 /* the tracee's */
	const struct identity *self;	 /* ours */
	const struct llruleset *ruleset; /* what the tracee runs in */
};

struct verdict_result {
	enum verdict verdict;
	const char *note;	      /* static: what is known, or NULL */
	bool hidden;		      /* the path could not be read: `other`, with a note */
	bool of_process;	      /* an entry of one process on /proc: the same */
	bool outside;		      /* what /proc tells of a process outside: the same */
	int wall;		      /* what the ruleset alone answers: 0, -EACCES or -EXDEV */
	int anyway;		      /* -errno that it gets however it is answered; or 0 */
	struct need need[CALL_PATHS]; /* what was missing; loans of the call's or of `refused` */
	/*
	 * exec: the file that was refused where it is not the one named: a script's interpreter, a
	 * program's loader. Release with path_release().
	 */
	struct path_at refused;
};

/* 0 or -errno (-ENOMEM...); the caller then treats the call as refused. */
int verdict_of(const struct verdict_input *in, struct verdict_result *ret);
void verdict_release(struct verdict_result *r);
