/*
 * fastpath: watched calls that succeed stop no more. Inside the room; x86-64 only.
 *
 * Once a run has made a few watched calls, the next `syscall` instruction of a mapped file that
 * makes one is changed: the instruction before it becomes a jump to a stub (tracer/stub.h) in the
 * unused end of the same executable segment: nothing new is mapped. Where in the file else that can
 * be done is learned with it, once for each file and run. Every later image is changed at its first
 * stop in the file, and that call is made by its stub already; the file that it begins in (its
 * loader, or a static program) before it has made any; and where a first thread is born, every file
 * is that is mapped then. Written is through /proc/PID/mem (tracer/patch.h).
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

/* Is there one for this machine? Where there is none, fastpath_none.c is built instead. */
bool fastpath_exists(void);
/*
 * way: how stubs go, until fastpath_all_pass(). state_dir: where what is learned of files is kept
 * between runs (tracer/sitefile.h), or NULL. 0, -ENOMEM, -EOPNOTSUPP.
 */
int fastpath_new(const struct stub_marks *marks, enum stub_way way, const char *state_dir,
		 struct fastpath **ret);
void fastpath_free(struct fastpath *f);
/* Load what the first of its decoding would load: it reads files. */
void fastpath_prepare(void);
/*
 * From now on calls that change something pass, too: new stubs' at once, those of an address space
 * that has stubs from the next one on that stops there.
 */
void fastpath_all_pass(struct fastpath *f);
/* Sites changed so far, in all address spaces. */
uint64_t fastpath_patched(const struct fastpath *f);
/* Times in a row that the kernel did not let one be changed, if it was given up for that. */
unsigned fastpath_unwritable(const struct fastpath *f);

/* ---- whose address space ---- */

/*
 * At the stop of an exec: a new one; NULL without memory: then it is simply slow. f may be NULL.
 * Nothing of the image has run, so its loader is changed at once.
 */
void fastpath_execed(struct fastpath *f, struct tracee *t);
/*
 * A child or thread was born of t, which is in its call still, and has not run yet: its address
 * space is t's, or a copy of it. f may be NULL.
 */
void fastpath_cloned(struct fastpath *f, struct tracee *t, struct tracee *child);
/*
 * t is about to install a filter, which must not see the marks: what was changed is changed back
 * and nothing new is. With more than one task in the address space the stubs are switched off
 * instead: a byte is written at once. (One of the others can be between that byte and its call;
 * if the filter is for all threads, it sees that one mark.)
 */
void fastpath_close(struct fastpath *f, struct tracee *t);

/* ---- at a stop that is not a call's ---- */

/*
 * A thread that a signal or a job-control stop meets in a stub is put on the plain path: its
 * handler and what it unwinds or compares (pthread_cancel's looks where it was), and a call that is
 * begun anew, are as if there were no stub.
 */
void fastpath_surface(struct fastpath *f, struct tracee *t);
/*
 * The same, and a signal is about to be delivered to it. Where it has a refusal to report first,
 * every signal is blocked until then, this one too: resumed with it, the kernel puts it back
 * (ptrace_signal(), kernel/signal.c).
 */
void fastpath_signalled(struct fastpath *f, struct tracee *t);
/* At the next seccomp stop: the thread's own mask again. */
void fastpath_unblock(struct tracee *t);

/* ---- at a seccomp stop of a watched call ---- */

/*
 * A call that a stub made: registers and t->at become those of the plain call at its site. A report
 * comes with the error that the call has already got (> 0): it is not made again (tracer/owed.h).
 * 0: the call, a stub's or not, is still to be made.
 */
int fastpath_leave(struct fastpath *f, struct tracee *t);
/*
 * A number that no call has: was it a changed site's, spoiled by a probe that is gone
 * (patch_mend())? True: t is to go on, and makes the call that the program's code stands for.
 */
bool fastpath_mend(struct fastpath *f, struct tracee *t);
/*
 * A plain call: count it, and change its site when that pays. True: t is to go on, and makes the
 * call by its stub; only where `may_divert`, since the stub's call may stop again.
 */
bool fastpath_count(struct fastpath *f, struct tracee *t, const struct sysent *ent,
		    bool may_divert);
