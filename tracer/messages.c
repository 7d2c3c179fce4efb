#include "tracer/messages.h"

#include "tracer/grant.h"
#include "tracer/maps.h"
#include "tracer/regs.h"
#include "tracer/util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define NR_MSEAL 462 /* 6.10, on every architecture */
#define PAGE	 4096u
/* 20 ms: a thread that had a processor for so long has left the few instructions that count. */
#define TICKS_PAST  3
#define RUNNERS_MAX 256 /* threads that run at one moment; more is too many */

/* A thread that ran when the filter was put on. */
struct runner {
	pid_t tid;
	uint64_t ticks;
};

enum step { STEP_SKIPPED, STEP_MAPPED, STEP_CLOSED, STEP_SEALED, STEP_FILTERED, STEP_SLEPT };

struct watch {
	enum step step;
	struct regs_saved saved; /* at the exit stop of the call that was skipped */
	bool is_saved;
	struct regs_call doing; /* what is made in its place */
	int file;		/* a loan of the tracer's */
	int number;		/* the file's descriptor in the tracee */
	struct runner runner[RUNNERS_MAX];
	size_t runners;
};

/* Not in the table: nobody else watches these. */
static const struct numbers {
	int map, close, seal, sleep;
	uint64_t at; /* where the file is mapped: in nobody's way */
	bool narrow;
} numbers[SYS_ARCH_COUNT] = {
	[SYS_ARCH_X86_64] = {9, 3, NR_MSEAL, 7, 0x6f5753000000, false},
	[SYS_ARCH_I386] = {192, 6, NR_MSEAL, 168, 0x6f530000, true},
	[SYS_ARCH_AARCH64] = {222, 57, NR_MSEAL, 124 /* sched_yield */, 0x6f5753000000, false},
};

/* ---- the file ---- */

struct fprog {
	uint16_t len;
	uint64_t filter __attribute__((aligned(8)));
};

struct fprog32 {
	uint16_t len;
	uint32_t filter;
};

#define PROGRAM_AT 16

static int write_file(int fd, const struct numbers *n)
{
	char page[PAGE] = {0};
	struct sock_filter *program = (struct sock_filter *)(page + PROGRAM_AT);
	size_t len;
	int r = filter_build_messages(program, (PAGE - PROGRAM_AT) / sizeof(*program), &len);

	if (r < 0)
		return r;
	struct fprog wide = {.len = (uint16_t)len, .filter = n->at + PROGRAM_AT};
	struct fprog32 narrow = {.len = (uint16_t)len, .filter = (uint32_t)(n->at + PROGRAM_AT)};
	memcpy(page, n->narrow ? (void *)&narrow : (void *)&wide,
	       n->narrow ? sizeof(narrow) : sizeof(wide));
	if (write(fd, page, PAGE) != PAGE)
		return -EIO;
	return fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0
		       ? -errno
		       : 0;
}

/* One for each way of making calls, for all of them. */
static int file_of(struct tracer *tr, enum sys_arch arch)
{
	if (tr->message_file[arch] > 0)
		return tr->message_file[arch];
	int fd AUTOCLOSE = memfd_create("filter", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	int r = write_file(fd, &numbers[arch]);
	if (r == 0)
		tr->message_file[arch] = TAKE_FD(fd);
	return r < 0 ? r : tr->message_file[arch];
}

/* Is it the file, and nothing that anybody can change, that lies there? */
static bool is_mapped(const struct tracee *t)
{
	struct maps_region where;
	struct stat st;
	uint64_t at = numbers[t->at.arch].at;

	return fstat(t->watch->file, &st) == 0 && maps_find(t->tid, at, &where, NULL) == 0 &&
	       where.ino == st.st_ino && where.dev == st.st_dev && where.offset == 0 &&
	       where.start == at && where.shared && !where.write;
}

/* ---- who needs it ---- */

/* SOCK_RAW is made a datagram socket, too (net/unix/af_unix.c). */
static bool makes_datagram(const uint64_t args[6])
{
	uint32_t type = (uint32_t)args[1] & 0xf;

	return (uint32_t)args[0] == AF_UNIX && (type == SOCK_DGRAM || type == SOCK_RAW);
}

static bool shares_table(const uint64_t args[6])
{
	return (args[0] & CLONE_FILES) && !(args[0] & CLONE_THREAD);
}

bool messages_due(const struct tracer *tr, const struct tracee *t, const struct sysent *ent,
		  const uint64_t args[6])
{
	enum sys_id id = sysent_id(ent);

	if (tr->options.native)
		return false;
	bool watched = t->at.data == FILTER_MESSAGE_DATA && !messages_never(t);
	if (id == SYS_ID_clone)
		return !watched && shares_table(args) && !messages_never(t);
	return !watched && (id == SYS_ID_socket || id == SYS_ID_socketpair) && makes_datagram(args);
}

bool messages_can_be_sealed(void)
{
	/* A flag that there is not: EINVAL. */
	return syscall(NR_MSEAL, 0, 0, 1) == 0 || errno != ENOSYS;
}

bool messages_never(const struct tracee *t)
{
	return t->own_seccomp;
}

struct filtered {
	pid_t tgid;
};

static void set_own_seccomp(struct tracee *t, void *arg)
{
	const struct filtered *f = arg;

	t->own_seccomp |= t->tgid == f->tgid;
}

void messages_filtered(struct tracer *tr, const struct tracee *t)
{
	struct filtered f = {.tgid = t->tgid};

	tracee_each(&tr->table, set_own_seccomp, &f);
}

/* ---- threads in the middle of a send ---- */

/* From the text of stat: state, and processor time in ticks. */
static bool read_stat(pid_t tgid, pid_t tid, char *ret_state, uint64_t *ret_ticks)
{
	char path[64], text[512];
	unsigned long long user, kernel;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", tgid, tid);
	int fd AUTOCLOSE = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return false;
	text[n] = '\0';
	char *end = strrchr(text, ')');
	if (!end || sscanf(end + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu",
			   ret_state, &user, &kernel) != 3)
		return false;
	*ret_ticks = user + kernel;
	return true;
}

/*
 * One that passed the old filter with a send, and has not come to look its socket up, would find
 * the new one. It can't sleep in between (__sys_sendmsg begins with that): who sleeps is past it,
 * or in another call; who runs is waited for. (A part of socketcall does sleep there, to read its
 * arguments: those are always watched.)
 */
static int note_runners(struct tracee *t)
{
	char path[64];
	struct watch *w = t->watch;
	struct dirent *e;
	struct runner r;
	char state;

	snprintf(path, sizeof(path), "/proc/%d/task", t->tgid);
	DIR *d = opendir(path);
	if (!d)
		return -errno;
	while ((e = readdir(d)) && w->runners < RUNNERS_MAX) {
		r.tid = (pid_t)atoi(e->d_name);
		if (r.tid > 0 && r.tid != t->tid && read_stat(t->tgid, r.tid, &state, &r.ticks) &&
		    state == 'R')
			w->runner[w->runners++] = r;
	}
	closedir(d);
	return w->runners < RUNNERS_MAX ? 0 : -E2BIG;
}

static bool is_past(const struct tracee *t, const struct runner *r)
{
	uint64_t ticks;
	char state;

	return !read_stat(t->tgid, r->tid, &state, &ticks) || state != 'R' ||
	       ticks >= r->ticks + TICKS_PAST;
}

static bool all_past(struct tracee *t)
{
	struct watch *w = t->watch;

	while (w->runners > 0 && is_past(t, &w->runner[w->runners - 1]))
		w->runners--;
	return w->runners == 0;
}

/* ---- the way ---- */

void messages_free(struct tracee *t)
{
	free(t->watch);
	t->watch = NULL;
}

void messages_abandon(struct tracee *t)
{
	grant_end(t);
	if (t->watch->is_saved)
		(void)regs_restore(t->tid, &t->watch->saved, -EACCES); /* ESRCH */
	messages_free(t);
	act_run(t);
}

/* Everything is in place: the program's own call. */
static void once_more(struct tracee *t)
{
	grant_end(t);
	(void)regs_redirect(t->tid, &t->watch->saved, &t->entered); /* ESRCH */
	messages_free(t);
	act_run(t);
}

static void make(struct tracee *t, enum step step, int nr, const uint64_t args[6])
{
	struct watch *w = t->watch;

	w->step = step;
	w->doing = (struct regs_call){.arch = t->at.arch, .ip = t->at.ip, .nr = nr};
	memcpy(w->doing.args, args, sizeof(w->doing.args));
	if (regs_redirect(t->tid, &w->saved, &w->doing) < 0)
		return; /* ESRCH: its end is on the way */
	act_resume(t, 0);
}

int messages_watch(struct tracer *tr, struct tracee *t)
{
	int file = file_of(tr, t->at.arch);
	struct watch *w = calloc(1, sizeof(*w));

	t->watch = w;
	int r = !w ? -ENOMEM : file < 0 ? file : regs_get_sigmask(t->tid, &t->sigmask);
	if (r == 0)
		r = regs_set_sigmask(t->tid, UINT64_MAX);
	if (r == 0)
		r = regs_skip(t->tid, -EACCES);
	if (r < 0) {
		messages_free(t);
		return r;
	}
	w->file = file;
	tracee_to(t, TRACEE_WATCH);
	act_resume(t, 0);
	return 0;
}

/* At the exit stop of the call that was skipped. */
static void fetch_file(struct tracer *tr, struct tracee *t)
{
	struct watch *w = t->watch;
	struct regs_call door = {.at = REGS_AT_ENTRY,
				 .arch = t->at.arch,
				 .ip = t->at.ip,
				 .nr = sysents[SYS_ID_openat].nr[t->at.arch],
				 .args = {(uint32_t)AT_FDCWD, 0, O_RDONLY}};
	int fd = fcntl(w->file, F_DUPFD_CLOEXEC, 3);

	if (fd < 0 || regs_save(t->tid, &w->saved) < 0) {
		if (fd >= 0)
			close(fd);
		messages_abandon(t);
		return;
	}
	w->is_saved = true;
	uint64_t mask = t->sigmask; /* everything is blocked already */
	if (grant_begin_as(tr, t, &door, fd) == 0)
		t->sigmask = mask;
}

void messages_given(struct tracee *t, int64_t number)
{
	const struct numbers *n = &numbers[t->at.arch];

	if (number < 0) {
		messages_abandon(t);
		return;
	}
	t->watch->number = (int)number;
	tracee_to(t, TRACEE_WATCH);
	make(t, STEP_MAPPED, n->map,
	     (uint64_t[6]){n->at, PAGE, PROT_READ, MAP_SHARED | MAP_FIXED_NOREPLACE,
			   (uint64_t)number, 0});
}

static void sleep_a_little(struct tracee *t)
{
	/* poll(NULL, 0, 1 ms) */
	make(t, STEP_SLEPT, numbers[t->at.arch].sleep, (uint64_t[6]){0, 0, 1});
}

static void next_step(struct tracer *tr, struct tracee *t, int64_t result)
{
	const struct numbers *n = &numbers[t->at.arch];
	struct watch *w = t->watch;

	switch (w->step) {
	case STEP_SKIPPED:
		fetch_file(tr, t);
		return;
	case STEP_MAPPED: /* EEXIST: by one that shares the memory; is_mapped() looks */
		make(t, STEP_CLOSED, n->close, (uint64_t[6]){(uint64_t)w->number});
		return;
	case STEP_CLOSED:
		make(t, STEP_SEALED, n->seal, (uint64_t[6]){n->at, PAGE, 0});
		return;
	case STEP_SEALED:
		if ((result != 0 && result != -ENOSYS) || !is_mapped(t))
			break;
		make(t, STEP_FILTERED, sysents[SYS_ID_seccomp].nr[t->at.arch],
		     (uint64_t[6]){SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, n->at});
		return;
	case STEP_FILTERED: /* > 0: a thread with a filter of its own */
		if (result != 0 || note_runners(t) < 0)
			break;
		/* fall through */
	case STEP_SLEPT:
		if (all_past(t))
			once_more(t);
		else
			sleep_a_little(t);
		return;
	}
	messages_abandon(t);
}

/* Is it what we wanted? Another thread may change the code under it. */
static bool is_ours(const struct tracee *t, const struct regs_call *now)
{
	const struct watch *w = t->watch;

	return now->nr == w->doing.nr && now->ip == w->doing.ip &&
	       !memcmp(now->args, w->doing.args, sizeof(now->args));
}

void messages_seccomp(struct tracee *t)
{
	struct regs_call now;

	if (regs_call(t->tid, &now) < 0)
		return;
	if (is_ours(t, &now))
		act_resume(t, 0);
	else
		messages_abandon(t);
}

void messages_syscall(struct tracer *tr, struct tracee *t)
{
	struct regs_call now;

	if (regs_call(t->tid, &now) < 0)
		return;
	if (now.at == REGS_AT_EXIT)
		next_step(tr, t, now.result);
	else if (t->watch->step == STEP_SKIPPED || is_ours(t, &now))
		act_resume(t, 0);
	else
		messages_abandon(t);
}

void messages_to_door(struct tracer *tr, struct tracee *t)
{
	if (regs_set_arg(t->tid, t->at.arch, FILTER_MARK_ARG, tr->filter.grant) < 0)
		return;
	t->restore_arg = FILTER_MARK_ARG;
	tracee_to(t, TRACEE_CALL);
	act_resume(t, 0);
}
