#include "tracer/unwind.h"

#include "tracer/clock.h"
#include "tracer/libunwind.h"
#include "tracer/unwinder.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <time.h>

#define POLL_MS 5   /* how often a helper that is late is looked at */
#define DIE_MS	100 /* for a killed helper's end: one that waits for a disk may take longer */

struct unwind {
	struct elfsym_cache cache;
	struct unwind_counts counts;
	pid_t late; /* a killed helper that had not ended yet; 0: none */
	struct libunwind lib;
	bool lib_there;
};

int unwind_new(struct unwind **ret)
{
	struct unwind *u = calloc(1, sizeof(*u));
	if (!u)
		return -ENOMEM;
	u->lib_there = !libunwind_load(&u->lib);
	*ret = u;
	return 0;
}

/* True: it is gone. */
static bool reap(pid_t pid)
{
	return waitpid(pid, NULL, WNOHANG) != 0;
}

void unwind_free(struct unwind *u)
{
	if (!u)
		return;
	if (u->late)
		reap(u->late);
	free(u);
}

struct unwind_counts unwind_counts(const struct unwind *u)
{
	return u ? u->counts : (struct unwind_counts){0};
}

const char *unwind_end_name(enum unwind_end end)
{
	static const char *const name[UNWIND_ENDS] = {
		[UNWIND_COMPLETE] = "complete",
		[UNWIND_MORE] = "more",
		[UNWIND_TIME] = "time",
		[UNWIND_LOST] = "lost",
		[UNWIND_NARROW] = "32-bit",
		[UNWIND_UNREADABLE] = "unreadable",
		[UNWIND_NO_LIBRARY] = "no-libunwind",
	};
	BUG((size_t)end >= UNWIND_ENDS);
	return name[end];
}

struct unwind_stack *unwind_ref(struct unwind_stack *s)
{
	if (s)
		s->refs++;
	return s;
}

void unwind_unref(struct unwind_stack *s)
{
	if (!s || --s->refs)
		return;
	free(s->text);
	free(s);
}

/* ---- the helper ---- */

static bool ended_within(int pidfd, int ms)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};
	return poll(&p, 1, ms) > 0;
}

/* proc(5): the state follows the name, which may hold anything, in parentheses. */
static bool is_runnable(pid_t pid)
{
	char path[32], text[512];
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	int fd AUTOCLOSE = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return false;
	text[n] = '\0';
	const char *end = strrchr(text, ')');
	return end && !strncmp(end, ") R", 3);
}

static bool has_time_left(pid_t pid, clockid_t cpu, int64_t since_ms)
{
	int64_t passed_ms = clock_ms() - since_ms;
	if (clock_ns_of(cpu) / 1000000 >= UNWIND_CPU_MS)
		return false;
	return passed_ms < UNWIND_WALL_MS || (passed_ms < UNWIND_BUSY_MS && is_runnable(pid));
}

/* Until it has ended, or its time is over; then it is killed. */
static void wait_for(struct unwind *u, pid_t pid)
{
	clockid_t cpu;
	int64_t since_ms = clock_ms();
	int pidfd AUTOCLOSE = pidfd_open(pid, 0);
	bool ended = false;
	if (pidfd >= 0 && !clock_getcpuclockid(pid, &cpu))
		while (!(ended = ended_within(pidfd, POLL_MS)) && has_time_left(pid, cpu, since_ms))
			;
	if (!ended)
		kill(pid, SIGKILL);
	if (!ended && pidfd >= 0)
		ended_within(pidfd, DIE_MS);
	if (!reap(pid))
		u->late = pid;
}

static int run_helper(struct unwind *u, const struct unwinder_job *job)
{
	pid_t pid = fork();
	if (pid < 0)
		return errno == EAGAIN ? -EAGAIN : -ENOMEM;
	if (pid == 0)
		unwinder_main(job);
	wait_for(u, pid);
	return 0;
}

/* ---- what it found ---- */

/* NULL unless it is a text that ends in its place. */
static const char *text_at(const struct unwind_stack *s, size_t text_len, uint32_t at)
{
	if (!at || at >= text_len || !memchr(s->text + at, '\0', text_len - at))
		return NULL;
	return s->text + at;
}

static void remember(struct unwind *u, const struct unwinder_frame *f, const char *name)
{
	struct elfsym_known known = {.id = f->id, .addr = f->lookup};
	if (!f->searched || strlen(name) >= sizeof(known.name))
		return;
	known.start = f->object_offset - f->function_offset;
	memcpy(known.name, name, strlen(name) + 1);
	elfsym_cache_add(&u->cache, &known);
}

/* `r` is a copy that nobody else can change. */
static int take_result(struct unwind *u, const struct unwinder_result *r, struct unwind_stack *s)
{
	size_t text_len = sizeof(r->text);
	s->text = malloc(text_len);
	if (!s->text)
		return -ENOMEM;
	memcpy(s->text, r->text, text_len);
	s->len = r->len < UNWIND_FRAMES_MAX ? r->len : UNWIND_FRAMES_MAX;
	s->end = r->end < UNWIND_ENDS ? r->end : UNWIND_LOST;
	for (size_t i = 0; i < s->len; i++) {
		const struct unwinder_frame *from = &r->frame[i];
		const char *function = text_at(s, text_len, from->function);
		s->frame[i] = (struct unwind_frame){.ip = from->ip,
						    .function = function,
						    .function_offset = from->function_offset,
						    .object = text_at(s, text_len, from->object),
						    .object_offset = from->object_offset,
						    .is_signal = from->is_signal};
		remember(u, from, function ? function : "");
	}
	u->counts.tables += r->tables;
	return 0;
}

static int copy_result(struct unwind *u, const struct unwinder_result *shared,
		       const struct regs_dwarf *regs, struct unwind_stack **ret)
{
	struct unwinder_result *r AUTOFREE = malloc(sizeof(*r));
	struct unwind_stack *s = calloc(1, sizeof(*s));
	if (s)
		s->refs = 1;
	/* A helper that would not die may still be writing. */
	if (r)
		memcpy(r, shared, sizeof(*r));
	int err = r && s ? take_result(u, r, s) : -ENOMEM;
	if (err) {
		unwind_unref(s);
		return err;
	}
	if (!s->len) { /* the helper came to nothing: the call's own place is known all the same */
		s->frame[0] = (struct unwind_frame){.ip = regs->ip};
		s->len = 1;
	}
	*ret = s;
	return 0;
}

/* No memory, or nothing to read it with: where the call was made is all. */
static int only_ip(const struct regs_dwarf *regs, enum unwind_end end, struct unwind_stack **ret)
{
	struct unwind_stack *s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->refs = 1;
	s->end = end;
	s->len = 1;
	s->frame[0].ip = regs->ip;
	*ret = s;
	return 0;
}

static int open_memory(pid_t tid)
{
	char path[32];
	snprintf(path, sizeof(path), "/proc/%d/mem", tid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int unwind_in_helper(struct unwind *u, pid_t tid, int mem, const struct regs_dwarf *regs,
			    size_t max, struct unwind_stack **ret)
{
	struct unwinder_result *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
					      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return -ENOMEM;
	shared->end = UNWIND_TIME; /* unless it says otherwise */
	shared->text_len = 1;
	const struct unwinder_job job = {.lib = &u->lib,
					 .tid = tid,
					 .mem = mem,
					 .regs = regs,
					 .max = max,
					 .cache = &u->cache,
					 .result = shared};
	int err = run_helper(u, &job);
	if (!err)
		err = copy_result(u, shared, regs, ret);
	munmap(shared, sizeof(*shared));
	return err;
}

int unwind_thread(struct unwind *u, pid_t tid, size_t max, struct unwind_stack **ret)
{
	struct regs_dwarf regs;
	if (u->late && !reap(u->late))
		return -EBUSY;
	u->late = 0;
	int err = regs_get_dwarf(tid, &regs);
	if (err)
		return err;
	u->counts.stacks++;
	int mem AUTOCLOSE = open_memory(tid);
	if (mem < 0)
		return mem == -ENOENT ? -ESRCH : only_ip(&regs, UNWIND_UNREADABLE, ret);
	if (!u->lib_there)
		return only_ip(&regs, UNWIND_NO_LIBRARY, ret);
	max = max < 1 ? 1 : max > UNWIND_FRAMES_MAX ? UNWIND_FRAMES_MAX : max;
	return unwind_in_helper(u, tid, mem, &regs, max, ret);
}
