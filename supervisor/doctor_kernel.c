/*
 * What the kernel can do, and what stands between it and us.
 */
#include "supervisor/doctor_probes.h"

#include "landlock/llabi.h"
#include "landlock/llright.h"
#include "landlock/llruleset.h"
#include "supervisor/engine.h"
#include "tracer/clock.h"
#include "tracer/status.h"
#include "tracer/tracer.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <sys/wait.h>

/* The first line of a small file, without its newline; "" where there is none. */
static const char *first_line(const char *path, char *text, size_t n)
{
	int fd AUTOCLOSE = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, text, n - 1);
	text[got < 0 ? 0 : got] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return text;
}

/* A number of /proc/self/status; -1: not there. */
static long own_status(const char *key)
{
	char line[256];
	long value = -1;
	FILE *f = fopen("/proc/self/status", "re");
	if (!f)
		return -1;
	while (fgets(line, sizeof line, f))
		if (!strncmp(line, key, strlen(key)) && line[strlen(key)] == ':')
			value = strtol(line + strlen(key) + 1, NULL, 10);
	fclose(f);
	return value;
}

/* A system call filter that we were born with: a container's, another supervisor's. */
static bool is_filtered(void)
{
	return own_status("Seccomp") == 2;
}

/* Run f in a child: its exit status, or -1 where a signal ended it. */
static int in_child(int (*f)(void *arg), void *arg)
{
	int status;
	pid_t pid = fork();
	if (pid == 0)
		_exit(f(arg));
	if (pid < 0)
		return -1;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void doctor_probe_kernel(struct doctor *d, const char *probe)
{
	struct utsname u;
	uname(&u);
	doctor_find(d, probe, DOCTOR_OK, "%s %s, %s", u.sysname, u.release, u.machine);
}

/* ---- whose machine ---- */

static const char *container_kind(const struct doctor *d)
{
	for (char *const *e = d->env; e && *e; e++)
		if (!strncmp(*e, "container=", 10) && (*e)[10])
			return *e + 10;
	if (!access("/run/.containerenv", F_OK))
		return "Podman";
	if (!access("/.dockerenv", F_OK))
		return "Docker";
	return NULL;
}

/* A kernel that is none, or another system's; a container may be on it, too. */
static const char *kernel_kind(char *text, size_t n)
{
	/* gVisor tells every program that it is this kernel, built at this second. */
	if (strstr(first_line("/proc/version", text, n), "4.4.0 #1 SMP Sun Jan 10 15:06:54 PST"))
		return "gVisor";
	if (strcasestr(first_line("/proc/sys/kernel/osrelease", text, n), "microsoft"))
		return strstr(text, "WSL2") ? "WSL 2" : "WSL";
	return NULL;
}

void doctor_probe_container(struct doctor *d, const char *probe)
{
	char text[256];
	const char *inside = container_kind(d), *on = kernel_kind(text, sizeof text);
	doctor_find(d, probe, DOCTOR_OK, "%s%s%s%s%s; no extra privileges are needed",
		    inside ? "inside " : "none found", inside ? inside : "", on ? ", on " : "",
		    on ? on : "", is_filtered() ? ", which filters system calls" : "");
}

/* ---- Landlock ---- */

static void no_landlock(struct doctor *d, const char *probe, int err)
{
	char lsm[256];
	struct doctor_finding *f;
	if (err == -EOPNOTSUPP) {
		first_line("/sys/kernel/security/lsm", lsm, sizeof lsm);
		f = doctor_find(
			d, probe, DOCTOR_MISSING,
			"Landlock, the kernel's sandbox, is there but switched off at boot");
		doctor_fix(d, f, "add landlock to the kernel's lsm= parameter (lsm=landlock,%s)",
			   *lsm ? lsm : "...");
	} else if (err == -ENOSYS && !is_filtered()) {
		f = doctor_find(
			d, probe, DOCTOR_MISSING,
			"this kernel has no Landlock, the sandbox that the wall is made of");
		doctor_fix(d, f, "use Linux 5.13 or newer, built with CONFIG_SECURITY_LANDLOCK");
	} else {
		f = doctor_find(
			d, probe, DOCTOR_MISSING,
			"a container's filter or the kernel hides Landlock, its sandbox (%s)",
			strerror(-err));
		doctor_fix(d, f,
			   "let the container's seccomp profile pass landlock_create_ruleset, "
			   "landlock_add_rule and landlock_restrict_self");
	}
}

/* Errata that were found and are fixed in newer kernels, and what an unfixed one means here. */
static const struct {
	uint32_t bit;
	const char *what;
} errata[] = {
	{LLABI_ERRATUM_SCOPED_SIGNAL, "threads of one process can't signal each other"},
	{LLABI_ERRATUM_DISCONNECTED,
	 "a directory that was moved out of a bind mount is judged late"},
};

void doctor_probe_landlock(struct doctor *d, const char *probe)
{
	struct llabi abi;
	int64_t begin = clock_us();
	int err = llabi_detect(&abi);
	if (err) {
		no_landlock(d, probe, err);
		return;
	}
	int64_t took = clock_us() - begin;
	uint64_t lacks = llright_supported(LLRIGHT_ABI_MAX) & ~abi.fs &
			 (LLR_REFER | LLR_TRUNCATE | LLR_IOCTL_DEV);
	struct doctor_finding *f;
	if (lacks) {
		char names[256];
		llright_format(lacks, names, sizeof names);
		f = doctor_find(d, probe, DOCTOR_DEGRADED,
				"the kernel's sandbox (Landlock ABI %d) can't refuse %s: nothing "
				"is run without --allow-degraded",
				abi.abi, names);
		doctor_fix(d, f, "use Linux 6.10 or newer (ABI 5)");
	} else {
		f = doctor_find(
			d, probe, DOCTOR_OK,
			"the kernel's sandbox (Landlock ABI %d) can refuse every access to files%s",
			abi.abi,
			abi.scoped ? ", and keeps signals and abstract sockets inside" : "");
	}
	f->took_us = took;
	/* Without an answer (before ABI 7) nobody knows which are fixed. */
	for (size_t i = 0; abi.errata && i < ARRAY_LEN(errata); i++)
		if (!(abi.errata & errata[i].bit))
			doctor_fix(d,
				   doctor_find(d, probe, DOCTOR_DEGRADED,
					       "this kernel has a known fault: %s", errata[i].what),
				   "a newer stable release of this kernel has the fix");
}

enum wall_result { WALL_STANDS, WALL_NOT_BUILT, WALL_OPEN };

/* An empty wall: then nothing may open. */
static int try_wall(void *arg)
{
	struct llruleset *rules;
	struct llabi abi;
	(void)arg;
	if (llabi_detect(&abi) || llruleset_new(&abi, 0, &rules) || llruleset_restrict(rules))
		return WALL_NOT_BUILT;
	if (open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC) >= 0)
		return WALL_OPEN;
	return errno == EACCES ? WALL_STANDS : WALL_OPEN;
}

void doctor_probe_wall(struct doctor *d, const char *probe)
{
	int64_t begin = clock_us();
	int result = in_child(try_wall, NULL);
	int64_t took = clock_us() - begin;
	if (result == WALL_STANDS) {
		doctor_find(
			d, probe, DOCTOR_OK,
			"a test program built a wall round itself, and could not read / any more")
			->took_us = took;
		return;
	}
	struct doctor_finding *f = doctor_find(
		d, probe, DOCTOR_MISSING,
		result == WALL_OPEN ? "a test program without any right could read / all the same"
				    : "a test program could not build a wall round itself");
	doctor_fix(d, f,
		   "see landlock above; behind 16 walls of others already no further one can be "
		   "built");
}

/* ---- seeing ---- */

static void no_ptrace(struct doctor *d, const char *probe, int err)
{
	char scope[16];
	struct doctor_finding *f =
		doctor_find(d, probe, DOCTOR_MISSING,
			    "a program's calls can't be watched (ptrace: %s)", strerror(-err));
	first_line("/proc/sys/kernel/yama/ptrace_scope", scope, sizeof scope);
	if (!strcmp(scope, "2") || !strcmp(scope, "3"))
		doctor_fix(d, f,
			   "kernel.yama.ptrace_scope is %s, which forbids it: sysctl "
			   "kernel.yama.ptrace_scope=1 (from 3 only a reboot leads back)",
			   scope);
	else if (is_filtered())
		doctor_fix(d, f,
			   "a system call filter forbids it; with Docker: --cap-add SYS_PTRACE, or "
			   "a seccomp profile that passes ptrace");
	else
		doctor_fix(d, f, "find out what forbids ptrace here: AppArmor, SELinux, gVisor?");
}

static void no_filter(struct doctor *d, const char *probe, int err)
{
	struct doctor_finding *f;
	if (err == -EBUSY) {
		f = doctor_find(
			d, probe, DOCTOR_MISSING,
			"another supervisor watches the calls of all that is started here already");
		doctor_fix(d, f,
			   "start warder outside of it: a process can have one seccomp listener "
			   "(WSL 1 and some container runtimes take it)");
		return;
	}
	f = doctor_find(d, probe, DOCTOR_MISSING,
			"a program's calls can't be made to wait for an answer (seccomp: %s)",
			strerror(-err));
	doctor_fix(d, f,
		   "use Linux 5.9 or newer, and let the container's profile pass seccomp, "
		   "pidfd_open and pidfd_getfd");
}

void doctor_probe_ptrace(struct doctor *d, const char *probe)
{
	struct tracer_options options = {0};
	struct tracer *t;
	struct tracer_spawn spawn = {.file = "/bin/true",
				     .argv = (char *[]){"true", NULL},
				     .envp = d->env,
				     .stdio = {-1, -1, -1},
				     .ctty = -1};
	enum tracer_stage stage = TRACER_STAGE_SETUP;
	pid_t pid;
	struct status self;
	if (engine_is_traced(&self)) {
		doctor_fix(d,
			   doctor_find(d, probe, DOCTOR_MISSING,
				       "process %ld traces this one already (a debugger, strace or "
				       "another warder)",
				       own_status("TracerPid")),
			   "start warder outside of it: a process has one tracer");
		return;
	}
	int64_t begin = clock_us();
	int err = tracer_new(&options, &t);
	if (!err) {
		err = tracer_spawn(t, &spawn, &pid, &stage);
		tracer_free(t);
	}
	if (err && stage == TRACER_STAGE_FILTER)
		no_filter(d, probe, err);
	else if (err)
		no_ptrace(d, probe, err);
	else
		doctor_find(d, probe, DOCTOR_OK,
			    "a test program was watched: its calls are seen, and can wait for an "
			    "answer")
			->took_us = clock_us() - begin;
}

static int try_privileges(void *arg)
{
	(void)arg;
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0;
}

void doctor_probe_privileges(struct doctor *d, const char *probe)
{
	if (!in_child(try_privileges, NULL)) {
		doctor_find(
			d, probe, DOCTOR_OK,
			"what runs inside gains no privileges: sudo and its like have none there");
		return;
	}
	doctor_fix(d,
		   doctor_find(d, probe, DOCTOR_MISSING,
			       "a program can't be kept from gaining privileges (no_new_privs)"),
		   "let the container's seccomp profile pass prctl(PR_SET_NO_NEW_PRIVS)");
}

/* ---- 32-bit programs ---- */

#ifdef __x86_64__
static int try_i386(void *arg)
{
	long pid;
	(void)arg;
	/* getpid by the 32-bit entry: where the kernel has none, a signal ends us. */
	__asm__ volatile("int $0x80" : "=a"(pid) : "a"(20) : "memory", "r8", "r9", "r10", "r11");
	return pid != getpid();
}

void doctor_probe_i386(struct doctor *d, const char *probe)
{
	bool runs = !in_child(try_i386, NULL);
	doctor_find(d, probe, DOCTOR_OK, "%s",
		    runs ? "32-bit programs run here, and are watched, too"
			 : "32-bit programs don't run on this kernel");
}
#else
void doctor_probe_i386(struct doctor *d, const char *probe)
{
	doctor_find(d, probe, DOCTOR_OK,
		    "32-bit programs are not watched here: every call of theirs is refused");
}
#endif
