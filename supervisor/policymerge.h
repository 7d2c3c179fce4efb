/*
 * policymerge: many policies as one text.
 *
 * All sources of rules form one set whose order does not matter, so merging is joining the sets:
 * rules about the same path with the same effect become one with all their accesses, presets are
 * named once, comments are kept, each once and the first POLICYMERGE_NOTES_MAX of a line. The
 * result is sorted. It does not matter in which order or in how many steps texts are merged.
 */
#pragma once

#include "supervisor/policyfile.h"

#define POLICYMERGE_NOTES_MAX 8
#define POLICYMERGE_NOTE_MAX  200 /* bytes of each */

struct policymerge; /* owns what it was given */

int policymerge_new(struct policymerge **ret);
void policymerge_free(struct policymerge *m);
/* 0; -EINVAL with *ret_error: syntax; -ENOMEM. Nothing is resolved: paths stay as they are written.
 */
int policymerge_add(struct policymerge *m, const char *name, const char *text, size_t n,
		    struct policy_error *ret_error);
/* The text. Sorts: may be called again after further adds. */
void policymerge_write(struct policymerge *m, struct buf *out);
