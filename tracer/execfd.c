#include "tracer/execfd.h"

#include "tracer/grant.h"
#include "tracer/regs.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

struct execfd {
	struct regs_saved saved; /* the program's registers, at the exit stop of its exec */
	struct regs_call exec;	 /* the exec that is made for it; args[0] is the descriptor */
	int64_t result;		 /* what its own exec returned, and what it will return */
};

/* close(2) is not watched, so it has no row. */
static const int close_nr[SYS_ARCH_COUNT] = {
	[SYS_ARCH_X86_64] = 3, [SYS_ARCH_I386] = 6, [SYS_ARCH_AARCH64] = 57};

static int64_t number_of(enum sys_id id, enum sys_arch arch)
{
	return sysents[id].nr[arch];
}

void execfd_free(struct tracee *t)
{
	free(t->execfd);
	t->execfd = NULL;
}

/* The program goes on behind its exec, which failed. */
static void go_back(struct tracee *t)
{
	(void)regs_restore(t->tid, &t->execfd->saved, t->execfd->result); /* ESRCH */
	t->over = true;
	t->result = t->execfd->result;
	execfd_free(t);
	act_run(t);
}

void execfd_abandon(struct tracee *t)
{
	grant_end(t);
	go_back(t);
}

/* execveat(fd, "", argv, envp, AT_EMPTY_PATH), from the execve or execveat that is held. */
static struct regs_call exec_of(const struct tracee *t)
{
	const struct call *c = &t->call;
	bool at = c->ent->arg[0] == ARG_DIRFD;
	unsigned path = at ? 1 : 0;
	struct regs_call exec = {.at = REGS_AT_ENTRY,
				 .arch = t->at.arch,
				 .ip = t->at.ip,
				 .nr = number_of(SYS_ID_execveat, t->at.arch)};

	exec.args[1] = c->args[path] + strlen(c->path[0].given);
	exec.args[2] = c->args[path + 1];
	exec.args[3] = c->args[path + 2];
	exec.args[4] = AT_EMPTY_PATH;
	return exec;
}

int execfd_begin(const struct tracer *tr, struct tracee *t, int fd)
{
	int given AUTOCLOSE = fd;
	struct regs_call door = {.at = REGS_AT_ENTRY,
				 .arch = t->at.arch,
				 .ip = t->at.ip,
				 .nr = number_of(SYS_ID_openat, t->at.arch),
				 .args = {(uint32_t)AT_FDCWD, t->call.args[0], O_RDONLY}};

	if (t->call.ent->need[0] != CALL_NEED_EXEC || !t->call.path[0].given)
		return -EINVAL;
	struct execfd *x = calloc(1, sizeof(*x));
	if (!x)
		return -ENOMEM;
	x->result = t->call.result;
	x->exec = exec_of(t);
	t->execfd = x;
	int r = regs_save(t->tid, &x->saved);
	if (r == 0)
		r = grant_begin_as(tr, t, &door, TAKE_FD(given));
	if (r < 0)
		execfd_free(t);
	return r;
}

void execfd_given(struct tracee *t, int64_t number)
{
	struct execfd *x = t->execfd;

	if (number < 0) {
		execfd_abandon(t);
		return;
	}
	x->exec.args[0] = (uint64_t)number;
	/* Signals stay blocked until the call has begun: a handler would run with its registers. */
	if (regs_redirect(t->tid, &x->saved, &x->exec) < 0)
		return; /* ESRCH: its end is on the way */
	tracee_to(t, TRACEE_EXEC);
	act_resume(t, 0);
}

void execfd_seccomp(struct tracee *t)
{
	struct regs_call now;

	if (regs_call(t->tid, &now) < 0)
		return;
	/* The new program inherits the mask. */
	grant_end(t);
	bool ours = now.nr == t->execfd->exec.nr && now.ip == t->execfd->exec.ip;
	if (!ours) { /* another thread has changed the code under it */
		go_back(t);
		return;
	}
	t->at = now;
	act_resume(t, 0);
}

/* The copy could not be run: the descriptor that was given goes. */
static void close_it(struct tracee *t, int64_t result)
{
	struct execfd *x = t->execfd;
	struct regs_call bye = {.arch = x->exec.arch,
				.ip = x->exec.ip,
				.nr = close_nr[x->exec.arch],
				.args = {x->exec.args[0]}};

	x->result = result;
	if (regs_get_sigmask(t->tid, &t->sigmask) < 0 || regs_set_sigmask(t->tid, UINT64_MAX) < 0 ||
	    regs_redirect(t->tid, &x->saved, &bye) < 0)
		return;
	tracee_to(t, TRACEE_CLOSE);
	act_resume(t, 0);
}

void execfd_syscall(struct tracee *t)
{
	struct regs_call now;

	if (regs_call(t->tid, &now) < 0)
		return;
	if (now.at != REGS_AT_EXIT)
		act_resume(t, 0);
	else if (t->state == TRACEE_EXEC) {
		/* A filter of the program's own may have answered before our stop came. */
		grant_end(t);
		close_it(t, now.result);
	} else
		execfd_abandon(t);
}
