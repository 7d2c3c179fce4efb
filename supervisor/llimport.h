/*
 * llimport: Landlock rights on paths as policy lines. Pure.
 *
 * Nothing is widened: an access is taken where all the rights that it stands for are given. Where
 * rights are left over that make no whole access, that is said.
 */
#pragma once

#include "supervisor/landlockconfig.h"

struct llimport_how {
	const char *cwd;     /* absolute: where relative paths start */
	const char *home;    /* written as ~; may be NULL */
	const char *comment; /* of each line */
};

/* Lines in *out, and in *unsaid what was not taken, a line each, escaped. 0 or -ENOMEM. */
int llimport(const struct landlockconfig *c, const struct llimport_how *how, struct buf *out,
	     struct buf *unsaid);
