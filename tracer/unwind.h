/*
 * unwind: who made the call? The native frames of a thread that a ptrace stop holds.
 *
 * On demand only; nothing is looked at before somebody asks. What is read was made by the tracee:
 * its stack, its unwind tables, its ELF files may all be lies, and libunwind was not written for
 * that. So the work is done in a forked helper (tracer/unwinder.h) that holds three kinds of
 * descriptors and nothing else: the tracee's memory (/proc/PID/mem, opened here: rights are checked
 * at the opening, so neither Yama nor a sandbox of the helper's matters), and the mapped objects'
 * files. Before the first untrusted byte is interpreted it enters a seccomp filter that knows pread
 * and little more. A crash, a loop, or a page that never comes (userfaultfd, FUSE) is then the
 * helper's alone; it is killed when its time is over, and the frames found so far stand.
 *
 * Unwind tables are read from the tracee's memory, never from a file. Names come from the file,
 * whose path is the tracee's to choose: it must be a regular file with the mapped inode's number
 * and the mapped ELF header, it is opened without following a last symlink and without waiting, and
 * read by bounded preads. What a frame says is the program's own word: for a person to read, never
 * to decide by.
 *
 * 32-bit code: libunwind is built for one architecture, so the call's own frame is told, and its
 * caller where the vdso's way out is recognised.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define UNWIND_FRAMES_MAX 32
/*
 * The helper's time: of a processor; all in all, when it waits for something then; and all in all
 * on a machine too busy to let it run.
 */
#define UNWIND_CPU_MS  50
#define UNWIND_WALL_MS 500
#define UNWIND_BUSY_MS 5000

/* Why the list ends where it does. */
enum unwind_end {
	UNWIND_COMPLETE, /* at the thread's first function */
	UNWIND_MORE,	 /* there are more frames than were asked for */
	UNWIND_TIME,	 /* the time was over, or the helper crashed */
	UNWIND_LOST,   /* the next frame can't be found: no unwind information, or a broken stack */
	UNWIND_NARROW, /* 32-bit code is not unwound */
	UNWIND_UNREADABLE, /* the memory can't be read (a process that is not dumpable) */
	UNWIND_NO_LIBRARY, /* libunwind is not there */
	UNWIND_ENDS,
};

struct unwind_frame {
	uint64_t ip;
	const char *function; /* as the symbol table has it, cut at 255 bytes; NULL: not known */
	uint64_t function_offset;
	const char *object;	/* a path, "[vdso]"; NULL: code that is of no file (a JIT's) */
	uint64_t object_offset; /* the address in the object, as addr2line -e wants it */
	bool is_signal;		/* the kernel's frame of a signal handler */
};

/* Shared: unwind_ref() and unwind_unref(). The innermost frame, which made the call, comes first.
 */
struct unwind_stack {
	unsigned refs;
	enum unwind_end end;
	size_t len;
	struct unwind_frame frame[UNWIND_FRAMES_MAX];
	char *text; /* private: what function and object point into */
};

/* What was done since unwind_new(). */
struct unwind_counts {
	uint64_t stacks;
	uint64_t tables; /* symbol tables that were searched: names found before are remembered */
};

struct unwind; /* remembers names, up to a bound */

/* Loads libunwind, too (tracer/library.h). 0 and *ret, or -ENOMEM. */
int unwind_new(struct unwind **ret);
void unwind_free(struct unwind *u);
/*
 * By the thread that traces tid, which must be in a ptrace stop. max: frames, at most
 * UNWIND_FRAMES_MAX. Blocks for a few ms; see UNWIND_*_MS. 0 and at least one frame; -ESRCH;
 * -EBUSY: an earlier helper can't be got rid of yet; -ENOMEM, -EAGAIN: no process can be made.
 */
int unwind_thread(struct unwind *u, pid_t tid, size_t max, struct unwind_stack **ret);
struct unwind_counts unwind_counts(const struct unwind *u);

/* "complete", "more", "time", ... */
const char *unwind_end_name(enum unwind_end end);
struct unwind_stack *unwind_ref(struct unwind_stack *s);
/* NULL is fine. */
void unwind_unref(struct unwind_stack *s);
