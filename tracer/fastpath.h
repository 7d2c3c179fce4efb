/*
 * fastpath: watched calls that succeed stop no more. Inside the room; x86-64 only.
 *
 * The second time that one `syscall` instruction of a mapped file makes a watched call, the
 * instruction before it becomes a jump to a stub (tracer/stub.h) in the unused end of the same
 * executable segment: nothing new is mapped. Where that can be done is learned once for each file
 * and run; every later process that maps the file is changed at its first stop in it. Written is
 * through /proc/PID/mem, which copies the page: no file changes, and no page is ever writable for
 * the tracee.
 *
 * Not done, and then every call takes its two stops: more than one task in the address space (one
 * of them could be in the middle of the bytes), a seccomp filter of the program's own (it would see
 * the marks), 32-bit code, code outside of files, an instruction that can't be moved, no room at
 * the segment's end, `fast` off. What was changed goes with the next exec, and is copied by fork.
 *
 * The kernel's wall does not depend on any of this. A forged mark hides the program's own denial
 * from the report and nothing else.
 */
#pragma once

#include "tracer/stub.h"
#include "tracer/tracee.h"

struct fastpath; /* what is known of files; one a tracer */
struct mm;	 /* an address space; tracees refer to it */

int fastpath_new(const struct stub_marks *marks, struct fastpath **ret);
void fastpath_free(struct fastpath *f);
/* Sites changed so far, in all address spaces. */
uint64_t fastpath_patched(const struct fastpath *f);

/* ---- whose address space ---- */

/* After an exec, a new one; NULL without memory: then it is simply slow. */
void fastpath_execed(struct tracee *t);
/* A child or thread was born of t: its address space is t's, or a copy of it. */
void fastpath_cloned(const struct tracee *t, struct tracee *child);
/* t is about to install a filter: what was changed is changed back, and nothing new is. */
void fastpath_close(struct fastpath *f, struct tracee *t);

/* ---- at a seccomp stop of a watched call ---- */

/*
 * A call that a stub made: registers and t->at become those of the plain call at its site. A report
 * comes with the error that the call has already got (> 0): it is not made again, and has its exit
 * stop next. 0: the call, a stub's or not, is still to be made.
 */
int fastpath_leave(struct fastpath *f, struct tracee *t);
/* A plain call: count it, and change its site when that pays. */
void fastpath_count(struct fastpath *f, struct tracee *t, const struct sysent *ent);
