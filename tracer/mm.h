/*
 * mm: a tracee's address space, as the fast path sees it: which call sites it has met there.
 * Shared by the tasks that share memory; counted.
 */
#pragma once

#include "tracer/stub.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MM_SITES_MAX 64

struct mm_site {
	uint64_t ip;	       /* behind the syscall instruction */
	uint64_t stub;	       /* address of its stub; 0: none */
	struct stub_site site; /* where there is a stub */
	unsigned hits;	       /* watched calls that did not take their stub */
	bool hopeless;	       /* it can't be changed */
};

struct mm {
	unsigned tasks;
	bool closed;	/* no site is changed any more */
	bool signalled; /* a handler may be on a stack, and return between any two instructions */
	bool filtered;	/* by a seccomp filter of the program's own; the next image will be, too */
	bool surveyed;	/* all that is mapped was looked at, and no call has come from elsewhere */
	size_t len, cap;
	struct mm_site *site; /* owned; up to MM_SITES_MAX */
};

/* NULL without memory. */
struct mm *mm_new(void);
struct mm *mm_ref(struct mm *mm);
struct mm *mm_copy(const struct mm *mm);
/* NULL is fine. */
void mm_unref(struct mm *mm);
/* The site with this ip, or NULL. */
struct mm_site *mm_known(const struct mm *mm, uint64_t ip);
/* The site with this ip, or a new one; NULL beyond the limit. A loan until the next call. */
struct mm_site *mm_site(struct mm *mm, uint64_t ip);
/*
 * s has a stub now, at this address. Where it has taken the place of another's that one is gone:
 * its object was unmapped.
 */
void mm_patched(struct mm *mm, struct mm_site *s, const struct stub_site *site, uint64_t stub);
/* The site whose stub holds ip, or NULL. */
struct mm_site *mm_site_of_stub(const struct mm *mm, uint64_t ip);
