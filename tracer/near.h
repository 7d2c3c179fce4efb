/*
 * near: the tracer on the tracee's processor. Inside the room.
 *
 * A stop is two changes of context where tracer and tracee share a processor. Where they don't,
 * each side is woken on one that has gone to sleep meanwhile: 5 to 50 times as long, most of all in
 * a virtual machine (bench/micro.c, "stop"). The scheduler parts them of its own accord: whoever is
 * woken goes to an idle processor if there is one (kernel/sched/fair.c, select_idle_sibling()). So
 * the tracing thread binds itself to the processor on which the last tracee stopped, and binds the
 * tracee to it, too, for the moment of waking it; with its next breath it gives the tracee back the
 * processors that it had.
 *
 * What the tracee can see of it: nothing, as it is bound only between two system calls of ours. If
 * it is quicker than the second all the same, sched_getaffinity and sched_setaffinity stop it until
 * that is done (syscalls.def), and so do a fork (near_born()) and an exec (near_execed()). Where
 * one asks about another thread, nobody is held any more (near_asked()). What is left is the line
 * Cpus_allowed of its own /proc/self/status, read within that moment; and who asked for all the
 * processors that there are has those, too, that come later (tracer/cpus.h).
 *
 * A thread that is bound to one processor must not have to wait there for its turn behind a tracee
 * that computes, while others idle. It asks for short slices, by which it is let through at once
 * (PREEMPT_SHORT, Linux 6.12): on kernels without them nothing is done here, and nothing with a
 * tracee that comes before us by its policy or its niceness. When nothing has stopped for a while
 * it roams again (near_rest()); so it does before it bears a thread or a process, which would
 * inherit its binding and its slices, and before the caller's own code runs.
 *
 * All of it may be refused (another user's thread, a processor taken away): then it is left out.
 * Nothing blocks.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct near;

/* Of the calling thread, which must be the tracing one. NULL: not on this kernel, or no memory. */
struct near *near_new(void);
/* The thread has its processors and its slice back. NULL is allowed, here and in all that follows.
 */
void near_free(struct near *n);

/* `tid` is in a stop and is about to be handled: come to its processor. */
void near_meet(struct near *n, pid_t tid);
/*
 * The same of one that waits at the door, and is not held: its answer wakes it on our processor
 * (tracer/door.h), so where the last guest was the same one it is asked for only now and then.
 */
void near_meet_guest(struct near *n, pid_t tid);
/*
 * `tid` is dead and not reaped yet: if it was met before, come to where it was. That processor is
 * free now, and who waits for it will be woken there.
 */
void near_mourn(struct near *n, pid_t tid);
/* The one that was met last may go wherever it likes. */
void near_part(struct near *n);
/*
 * Around the request that wakes `tid`: binds it to our processor if it was met there just now, and
 * gives it back its own ones.
 */
void near_hold(struct near *n, pid_t tid);
void near_let_go(struct near *n);
/*
 * It has another number since: exec by a thread that is not the leader. Should that have been in
 * the moment in which it was held, it was not to be found when it was let go.
 */
void near_execed(struct near *n, pid_t former, pid_t tid);
/*
 * `asks` is about to see or to set the processors of `about` (its own number, or 0: its own). One
 * that is about another's would meet it in the moment in which it is held, and what it sets would
 * be undone: from now on nobody is held.
 */
void near_asked(struct near *n, pid_t asks, pid_t about);
/* A child was born that has not run yet: it has its creator's processors. */
void near_born(struct near *n, pid_t creator, pid_t child);

/* Back to all of the thread's own processors, until the next near_meet(). */
void near_roam(struct near *n);
/*
 * To be called every few hundredths of a second while it says true: roams if nobody was met since
 * the last time.
 */
bool near_rest(struct near *n);
