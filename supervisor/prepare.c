/*
 * Before a run: what this machine and this command allow.
 */
#include "supervisor/run.h"

#include "landlock/llright.h"
#include "supervisor/command.h"
#include "supervisor/compile.h"
#include "supervisor/pool.h"
#include "tracer/util.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * An ordinary user's tree can't become anybody else: it runs with no_new_privs, and without
 * capabilities of our own user namespace no id or group can be changed.
 */
static bool has_one_identity(const struct identity *self)
{
	return !self->caps && self->real.uid == self->effective.uid &&
	       self->effective.uid == self->saved.uid && self->real.gid == self->effective.gid &&
	       self->effective.gid == self->saved.gid;
}

int prepare_ourselves(struct run *r)
{
	struct status read;
	const struct status *s = r->command->self ? r->command->self : &read;
	if (s == &read && engine_is_traced(&read))
		return run_refuse(r, -EPERM,
				  "this process is traced already (a debugger, strace or another "
				  "warder): the command would not be supervised");
	int err = identity_told(s, &r->self);
	if (err)
		return run_refuse(r, err, "/proc/thread-self/status can't be read: %s",
				  strerror(-err));
	r->one_identity = has_one_identity(&r->self);
	uint64_t ignored = status_mask(s, "SigIgn");
	sigemptyset(&r->ignored_before);
	for (int sig = 1; sig < NSIG; sig++)
		if (ignored >> (sig - 1) & 1)
			sigaddset(&r->ignored_before, sig);
	return 0;
}

int prepare_kernel(struct run *r)
{
	int err = llabi_detect(&r->abi);
	if (err == -ENOSYS)
		return run_refuse(r, err, "this kernel has no Landlock: nothing was run");
	if (err == -EOPNOTSUPP)
		return run_refuse(r, err,
				  "Landlock is not enabled on this kernel (add landlock to the "
				  "lsm= boot parameter): nothing was run");
	return err ? run_refuse(r, err, "Landlock: %s", strerror(-err)) : 0;
}

int prepare_command(struct run *r, struct command *found)
{
	int err = command_find(r->command->argv[0], r->command->env, r->cwd, found);
	if (err)
		return run_refuse(r, err, "%s", strerror(-err));
	r->out->not_found = found->not_found;
	r->out->not_executable = found->not_executable;
	if (found->not_found)
		return run_refuse(r, -ENOENT, "command not found");
	if (found->not_executable)
		return run_refuse(r, -EACCES, "found, but it can't be executed");
	r->file = found->file;
	unsigned before = (unsigned)policy_len(r->session->policy);
	err = command_allow(found->file, r->cwd, r->session->policy);
	if (policy_len(r->session->policy) != before)
		r->session->policy_version++;
	return err ? run_refuse(r, err, "%s", strerror(-err)) : 0;
}

int prepare_ruleset(struct run *r)
{
	llruleset_free(r->ruleset);
	r->ruleset = NULL;
	/* Each scope the kernel has: signals and abstract sockets stay inside the tree. */
	int err = llruleset_new(&r->abi, r->abi.scoped, &r->ruleset);
	if (err)
		return run_refuse(r, err, "Landlock: %s", strerror(-err));
	r->confine = (struct confine){.ruleset = r->ruleset,
				      .files = r->files_before,
				      .open = r->mode == ENGINE_PERMISSIVE};
	return 0;
}

int prepare_wall(struct run *r)
{
	struct compile_stats stats;
	struct compile_spares spares = {.like = r->session->project.dir};
	struct pool *pool = r->mode == ENGINE_PERMISSIVE ? NULL : session_pool(r->session);
	if (pool)
		spares.len = pool_fill(pool, &spares.fd);
	int err = compile_into(r->session->policy, r->ruleset, &spares, &stats);
	if (pool)
		pool_ruled(pool, !err && spares.ruled ? &spares.class : NULL);
	if (err)
		return run_refuse(r, err, "the policy could not be compiled: %s", strerror(-err));
	/* The ruleset is for the model alone where nothing is refused. */
	uint64_t missing = r->confine.open ? 0 : llruleset_unenforced(r->ruleset);
	if (missing && !r->session->allow_degraded) {
		char names[256];
		llright_format(missing, names, sizeof names);
		return run_refuse(r, -EOPNOTSUPP,
				  "this kernel's Landlock (ABI %d) can't enforce %s; "
				  "--allow-degraded runs all the same",
				  r->abi.abi, names);
	}
	return 0;
}

int prepare_guard(struct run *r)
{
	int err = ruling_begin(r);
	return err ? run_refuse(r, err, "what the policy protects can't be held: %s",
				strerror(-err))
		   : 0;
}

void prepare_limit(struct run *r)
{
	struct rlimit all;
	if (getrlimit(RLIMIT_NOFILE, &r->files_before))
		return;
	all = r->files_before;
	all.rlim_cur = all.rlim_max;
	setrlimit(RLIMIT_NOFILE, &all);
	r->limit_raised = true;
}

void prepare_stdin(struct run *r)
{
	struct stat st;
	int fd = r->command->stdio[0] >= 0 ? r->command->stdio[0] : STDIN_FILENO;
	r->stdin_at = !fstat(fd, &st) && S_ISREG(st.st_mode) ? lseek(fd, 0, SEEK_CUR) : -1;
}
