#include "tracer/straceimport_inside.h"

#include "tracer/util.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <string.h>

int stracestate_full(struct straceimport *in, struct straceproc *p)
{
	(void)p;
	in->full = true;
	return 0;
}

uint64_t stracestate_clone_flags(struct straceimport *in)
{
	const struct strace_value *v = straceargs_named(&in->args, "flags");
	uint64_t flags = 0;
	if (!v)
		v = straceargs_field(&in->args, straceargs_at(&in->args, 0), "flags");
	/* Words that are not known are signals and what else concerns us not. */
	if (v)
		(void)straceargs_number(v->text, &flags);
	return flags;
}

int stracestate_fork(struct straceimport *in, struct straceproc *p)
{
	const struct strace_result *result = &in->args.result;
	int64_t pid = result->here ? result->here : result->value;
	if (!straceevent_succeeded(in) || pid <= 0 || pid > INT_MAX)
		return 0;
	return stracewho_born(in, (pid_t)pid, p, stracestate_clone_flags(in)) ? 0 : -ENOMEM;
}

int stracestate_unshare(struct straceimport *in, struct straceproc *p)
{
	uint64_t flags = 0;
	int r = 0;
	if (!straceevent_succeeded(in) || !straceargs_at(&in->args, 0))
		return 0;
	(void)straceevent_number(in, 0, &flags);
	if (flags & (CLONE_FS | CLONE_NEWNS | CLONE_NEWUSER))
		r = straceproc_unshare_fs(p);
	if (r == 0 && (flags & CLONE_FILES))
		r = straceproc_unshare_files(p);
	return r;
}

int stracestate_setns(struct straceimport *in, struct straceproc *p)
{
	if (straceevent_succeeded(in) && !stracefds_any_has(in, "CLONE_NEWNET") &&
	    !stracefds_any_has(in, "CLONE_NEWIPC"))
		p->fs->strange = true;
	return 0;
}

int stracestate_wall(struct straceimport *in, struct straceproc *p)
{
	if (straceevent_succeeded(in))
		p->own_wall = true;
	return 0;
}

/* The strings of argv, as far as they are told. */
static void take_argv(struct straceimport *in)
{
	const struct sysent *ent = in->now.call->ent;
	const struct strace_value *array =
		straceargs_at(&in->args, sysent_id(ent) == SYS_ID_execveat ? 2 : 1);
	size_t at[TRACE_ARGV_MAX];
	size_t n = 0;
	buf_reset(&in->argv_text);
	const struct strace_value *v = straceargs_first(&in->args, array);
	for (; v && n < TRACE_ARGV_MAX; v = straceargs_beside(&in->args, array, v)) {
		if (v->kind != STRACE_STRING)
			continue;
		at[n++] = in->argv_text.len;
		straceargs_unescape(v->text, &in->argv_text);
		if (v->cut)
			buf_add_str(&in->argv_text, "...");
		buf_add_char(&in->argv_text, '\0');
	}
	for (size_t i = 0; i < n; i++)
		in->argv[i] = buf_str(&in->argv_text) + at[i];
	in->argv[n] = NULL;
}

int stracestate_exec(struct straceimport *in, struct straceproc *p)
{
	const struct strace_path *path = &in->now.path[0];
	if (!straceevent_succeeded(in))
		return 0;
	take_argv(in);
	bool told = in->now.paths && (path->real_told || path->given_told);
	char *exe = told ? strdup(path->real_told ? path->real.data : buf_str(&path->given)) : NULL;
	if (told && !exe)
		return -ENOMEM;
	free(p->exe);
	p->exe = exe;
	struct trace_event *ev = straceimport_owe(in, TRACE_EXEC, p);
	ev->exe = exe;
	ev->argv0 = in->argv[0];
	ev->argv = in->argv[0] ? in->argv : NULL;
	return straceproc_exec(p);
}

/* ---- directories ---- */

/* Where the call's name leads, as a string of the caller's; NULL: not told, or no memory. */
static char *led_to(const struct straceimport *in)
{
	const struct strace_path *path = &in->now.path[0];
	bool told = in->now.paths && path->real_told && !in->now.unsure.len;
	return told ? strdup(path->real.data) : NULL;
}

int stracestate_chdir(struct straceimport *in, struct straceproc *p)
{
	if (!straceevent_succeeded(in))
		return 0;
	in->moved = true;
	straceproc_chdir(p, led_to(in));
	if (p->fs->cwd)
		stracenames_set(in->names, p->fs->cwd, TRACE_THING_DIR);
	return 0;
}

int stracestate_fchdir(struct straceimport *in, struct straceproc *p)
{
	const struct strace_value *v = straceargs_at(&in->args, 0);
	uint64_t number = 0;
	if (!straceevent_succeeded(in) || !v)
		return 0;
	struct stracefd fd = stracefds_described(in, v->about, v->deleted);
	if (!fd.told && straceargs_number(v->text, &number) && number <= INT_MAX &&
	    !p->files->loose) {
		const struct stracefd *known = straceproc_fd(p, (int)number);
		if (known)
			fd = *known;
	}
	in->moved = true;
	straceproc_chdir(p, fd.path && !fd.deleted ? strdup(fd.path) : NULL);
	return 0;
}

/* It says where the process is, behind all symlinks, and as its own root shows it. */
int stracestate_getcwd(struct straceimport *in, struct straceproc *p)
{
	const struct strace_value *v = straceargs_at(&in->args, 0);
	if (!straceevent_succeeded(in) || !v || v->kind != STRACE_STRING || v->cut)
		return 0;
	buf_reset(&in->scratch);
	straceargs_unescape(v->text, &in->scratch);
	const char *told = buf_str(&in->scratch);
	if (*told != '/' || !p->fs->root || *p->fs->root || p->fs->strange)
		return 0;
	if (p->fs->cwd && strcmp(p->fs->cwd, told) != 0)
		stracepath_learn(in->names, p->fs->cwd, told);
	char *cwd = strdup(told);
	if (!cwd)
		return -ENOMEM;
	straceproc_chdir(p, cwd);
	return 0;
}

int stracestate_chroot(struct straceimport *in, struct straceproc *p)
{
	if (!straceevent_succeeded(in))
		return 0;
	char *root = led_to(in);
	if (root && !strcmp(root, "/"))
		*root = '\0';
	in->moved = true;
	free(p->fs->root);
	p->fs->root = root;
	return 0;
}

static void be_strange(struct straceproc *p, void *arg)
{
	(void)arg;
	if (p->fs)
		p->fs->strange = true;
}

/* What was known of names may be covered now; who sees the mount is not followed. */
int stracestate_mount(struct straceimport *in, struct straceproc *p)
{
	(void)p;
	if (!straceevent_succeeded(in))
		return 0;
	/* Of how mounts are passed on alone (MS_PRIVATE ...): nothing moves. */
	if (stracefds_any_has(in, "MS_PRIVATE") || stracefds_any_has(in, "MS_SLAVE") ||
	    stracefds_any_has(in, "MS_UNBINDABLE"))
		return 0;
	stracenames_forget_all(in->names);
	straceprocs_each(&in->procs, be_strange, NULL);
	return 0;
}

int stracestate_pivot(struct straceimport *in, struct straceproc *p)
{
	if (!straceevent_succeeded(in))
		return 0;
	in->moved = true;
	free(p->fs->root);
	p->fs->root = NULL;
	straceproc_chdir(p, NULL);
	return stracestate_mount(in, p);
}

static void end_of_group(struct straceproc *p, void *arg)
{
	const pid_t *tgid = arg;
	if (p->tgid == *tgid && !p->ended)
		straceproc_end(p);
}

/* exit_group(2): strace may say nothing more of it (-qq). */
int stracestate_exit(struct straceimport *in, struct straceproc *p)
{
	uint64_t status = 0;
	pid_t tgid = p->tgid;
	(void)straceevent_number(in, 0, &status);
	straceimport_owe(in, TRACE_EXIT, p)->status = (int)(status & 0xff) << 8;
	straceprocs_each(&in->procs, end_of_group, &tgid);
	return 0;
}
