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
 * One site, and what became of it. 0; -ENOENT: something else is there; or -errno: the kernel does
 * not let us write. Nothing was changed then that anybody reaches.
 */
struct patch_job {
	struct stub_site site;
	uint64_t stub;
	int result;
};
#define PATCH_JOBS_MAX 24
/*
 * The stubs first, then the ways to them: up to PATCH_JOBS_MAX, by few calls where stubs follow one
 * another and sites share pages.
 */
void patch_sites(int mem, const struct stub_marks *marks, struct patch_job *job, size_t n);
/* Do the jump and the stub stand there as they were written? */
bool patch_stands(int mem, const struct mm_site *s, const struct stub_marks *marks);
/*
 * The instruction is put back, where the jump is still there (its first byte may be a breakpoint's,
 * or the file's again). Only while nobody runs there.
 */
int patch_undo(int mem, const struct mm_site *s, const struct stub_marks *marks);
/*
 * A uprobe (the kernel's own breakpoint: perf, bpftrace) that is taken away puts the file's first
 * byte over a jump: with `mov $number,%eax` there, that loads the jump's distance instead, and the
 * call has that number. Is it so with this site? And `alone`, nobody else running there, the
 * instruction is put back. 0 or -ENOENT.
 */
int patch_mend(int mem, const struct mm_site *s, const struct stub_marks *marks, int64_t nr,
	       bool alone);
/* The stub goes this way from now on, whoever runs there. */
int patch_switch(int mem, struct mm_site *s, const struct stub_marks *marks, enum stub_way way);
