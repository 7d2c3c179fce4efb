/*
 * patch: a tracee's text, changed and changed back through /proc/PID/mem, which copies the page: no
 * file changes, and nothing becomes writable for the tracee. x86-64 only.
 *
 * What is there is compared before anything is written: the program may have changed it, or mapped
 * something else.
 */
#pragma once

#include "tracer/mm.h"

#include <stdbool.h>
#include <sys/types.h>

/* A descriptor (the caller's), or -errno. */
int patch_open(pid_t tid);
/*
 * The stub first, then the way to it. 0; -ENOENT: something else is there; or -errno: the kernel
 * does not let us write. Nothing was changed then that anybody reaches.
 */
int patch_site(int mem, const struct stub_site *site, const struct stub_marks *marks,
	       uint64_t stub);
/* Do the jump and the stub stand there as they were written? */
bool patch_stands(int mem, const struct mm_site *s, const struct stub_marks *marks);
/* The instruction is put back, where the jump is still there. Only while nobody runs there. */
int patch_undo(int mem, const struct mm_site *s, const struct stub_marks *marks);
/* The stub is switched off (stub_switch()), whoever runs there. */
int patch_switch_off(int mem, const struct mm_site *s, const struct stub_marks *marks);
