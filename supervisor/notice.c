/*
 * What the report says of a run beside its denials: calls that no path grant is about, and programs
 * that did not run with all they are made for.
 */
#include "supervisor/run.h"

#include "landlock/llright.h"
#include "supervisor/escape.h"
#include "supervisor/proc.h"
#include "tracer/util.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>

/* Programs that are named; of more it is only said that there were some. */
#define UNPRIVILEGED_MAX 8
/* Programs that a call's note names. */
#define CALLERS_MAX 3
/* Columns of a program's name in a note. */
#define NAME_WIDTH 64

static bool is_mount(const struct call *c)
{
	return c->ent->group == SYS_GROUP_MOUNT;
}

static bool is_queue(const struct call *c)
{
	return c->ent->group == SYS_GROUP_QUEUE;
}

static bool wants_listener(const struct call *c)
{
	return !strcmp(c->ent->name, "seccomp") &&
	       (uint32_t)c->args[0] == SECCOMP_SET_MODE_FILTER &&
	       (c->args[1] & SECCOMP_FILTER_FLAG_NEW_LISTENER);
}

/* The wall's doing, where we have what it takes from who is behind it (confine.c). */
static bool makes_namespace(const struct call *c)
{
	enum sys_id id = sysent_id(c->ent);
	return c->result == -EPERM &&
	       (id == SYS_ID_unshare || id == SYS_ID_setns || id == SYS_ID_clone);
}

static bool makes_socket(const struct call *c)
{
	return !strcmp(c->ent->name, "socket") || !strcmp(c->ent->name, "socketpair");
}

#define OF_PROCESS                                                                                 \
	"an entry on /proc of a process was refused %u×: only a rule for all of /proc, from the " \
	"start, can allow it"

/* %u is how often. Those that are told come first in the report, and are lines on stderr too. */
static const struct notice {
	const char *call; /* its name; NULL: `is` says, or it is counted elsewhere */
	bool (*is)(const struct call *c);
	const char *text;
	bool told;
	const char *native; /* the text where there is no wall, if it is another */
} notices[RUN_NOTICES] = {
	[RUN_NOTICE_IO_URING] = {.call = "io_uring_setup",
				 .text = "io_uring refused %u×",
				 .native = "io_uring was set up %u×: what is opened through it is "
					   "not seen"},
	[RUN_NOTICE_PTRACE] = {.call = "ptrace",
			       .text = "ptrace was asked for %u×: a debugger or tracer does not "
				       "work inside warder",
			       .told = true},
	[RUN_NOTICE_MOUNT] = {.is = is_mount,
			      .text = "mounting was refused %u×: Landlock forbids it, and no path "
				      "grant can help",
			      .told = true,
			      .native = "mounting was asked for %u×: behind the wall Landlock "
					"forbids it"},
	[RUN_NOTICE_QUEUE] =
		{.is = is_queue,
		 .text = "a POSIX message queue was refused %u×: Landlock reaches them "
			 "only where their file system is mounted and allowed",
		 .told = true,
		 .native = "a POSIX message queue was asked for %u×: behind the wall "
			   "Landlock forbids it"},
	[RUN_NOTICE_LIMITS] = {.call = "prlimit64",
			       .text = "another process's limits were asked to change %u×"},
	[RUN_NOTICE_LISTENER] = {.is = wants_listener,
				 .text = "a seccomp listener was asked for %u×: a process has one, "
					 "and it is warder's",
				 .told = true},
	[RUN_NOTICE_DATAGRAM] =
		{.is = makes_socket,
		 .text = "a unix datagram socket was refused %u×: the program has a "
			 "seccomp filter of its own, and can't be kept to the paths "
			 "that it may send to",
		 .told = true},
	[RUN_NOTICE_HIDDEN] = {.text = "a process whose memory can't be read was refused %u× "
				       "something that can't be named",
			       .told = true},
	[RUN_NOTICE_MAPS] = {.text = OF_PROCESS, .told = true},
	/* A runtime's own settings (comm, coredump_filter) are of no weight to whoever runs it. */
	[RUN_NOTICE_OF_PROCESS] = {.text = OF_PROCESS},
	/* ps, pgrep and top look at all that there is, and do with what they get. */
	[RUN_NOTICE_OUTSIDE] = {.text = "what /proc tells of a process outside of the sandbox was "
					"refused %u×: Landlock forbids it, and no path grant can "
					"help"},
	[RUN_NOTICE_NAMESPACE] =
		{.is = makes_namespace,
		 .text = "a namespace was refused %u×: root has no CAP_SYS_ADMIN inside, and no "
			 "path grant can help",
		 .told = true},
	[RUN_NOTICE_UNWRITABLE] =
		{.text = "a program's code could not be changed %u×: the kernel does not let "
			 "it be written (proc_mem.force_override), so every watched call "
			 "stops, as with --fast off"},
	[RUN_NOTICE_COPIED] =
		{.text = "%u× a program ran from a sealed copy: its /proc/self/exe is "
			 "not its file"},
	[RUN_NOTICE_PASSED_OVER] =
		{.text = "a program earlier on PATH was refused %u×, and another "
			 "one ran instead"},
};

/* Is it one of the names between ", "? Those in between are counted. */
static bool is_listed(const struct buf *names, const char *name, unsigned *ret_len)
{
	const char *at = buf_str(names);
	size_t n = strlen(name);
	bool found = false;
	for (*ret_len = 0; *at; (*ret_len)++) {
		size_t len = strcspn(at, ",");
		found |= len == n && !memcmp(at, name, n);
		at += len;
		at += strspn(at, ", ");
	}
	return found;
}

void notice_by(struct run *r, enum run_notice kind, const char *program)
{
	unsigned len;
	struct buf name = {0}, *names = &r->noticed_of[kind];
	r->noticed[kind]++;
	if (program)
		escape_add_str(&name, program);
	if (name.len && !is_listed(names, buf_str(&name), &len) && len < CALLERS_MAX)
		buf_addf(names, "%s%s", len ? ", " : "", buf_str(&name));
	buf_free(&name);
}

void notice_call(struct run *r, const struct tracer_event *ev)
{
	const struct call *c = ev->call;
	for (size_t i = 0; i < RUN_NOTICES; i++) {
		bool is = notices[i].call ? !strcmp(c->ent->name, notices[i].call)
					  : notices[i].is && notices[i].is(c);
		if (!is || (i == RUN_NOTICE_NAMESPACE && !(r->self.caps >> CAP_SYS_ADMIN & 1)))
			continue;
		char *program AUTOFREE = proc_comm(ev->pid);
		notice_by(r, (enum run_notice)i, program);
	}
	if (is_mount(c) && !r->confine.open && c->path[0].need != CALL_NEED_NONE)
		refusal_noticed(r, ev);
}

/* Without these there is no user namespace, and so no sandbox of the program's own. */
static bool makes_user_namespace(const char *entry)
{
	return !strcmp(entry, "uid_map") || !strcmp(entry, "gid_map") ||
	       !strcmp(entry, "setgroups");
}

/* The name alone says which of a process's entries it was: its number says nothing afterwards. */
void notice_refused(struct run *r, const struct waiter *w)
{
	const struct verdict_result *v = &w->verdict;
	const struct need *need = &v->need[0];
	const char *slash = need->at && need->at->real ? strrchr(need->at->real, '/') : NULL;
	struct buf who = {0};
	r->noticed[RUN_NOTICE_HIDDEN] += v->hidden;
	if (!v->of_process && !v->outside)
		return;
	const char *entry = slash ? slash + 1 : "?";
	enum run_notice kind = !v->of_process		     ? RUN_NOTICE_OUTSIDE
			       : makes_user_namespace(entry) ? RUN_NOTICE_MAPS
							     : RUN_NOTICE_OF_PROCESS;
	char *program AUTOFREE = proc_comm(w->pid);
	buf_addf(&who, "%s: %s", program ? program : "?", entry);
	notice_by(r, kind, buf_str(&who));
	buf_free(&who);
}

/* ---- a list of texts ---- */

static char **add_text(char **list, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static char **add_text(char **list, const char *fmt, ...)
{
	size_t n = 0;
	struct buf b = {0};
	va_list ap;
	while (list && list[n])
		n++;
	va_start(ap, fmt);
	buf_vaddf(&b, fmt, ap);
	va_end(ap);
	char **longer = realloc(list, (n + 2) * sizeof *longer);
	if (!longer) {
		buf_free(&b);
		return list;
	}
	longer[n] = buf_take(&b);
	longer[n + 1] = NULL;
	return longer;
}

static size_t count_texts(char *const *list)
{
	size_t n = 0;
	while (list && list[n])
		n++;
	return n;
}

static bool has_text(char *const *list, const char *text)
{
	for (; list && *list; list++)
		if (!strcmp(*list, text))
			return true;
	return false;
}

/* ---- programs without their privilege ---- */

/* What no_new_privs takes from this program, or NULL. */
static const char *privilege_of(const char *exe, const struct stat *st, const struct identity *as)
{
	struct statvfs fs;
	bool caps = getxattr(exe, "security.capability", NULL, 0) > 0;
	if (statvfs(exe, &fs) || (fs.f_flag & ST_NOSUID))
		return NULL; /* it would not have it natively */
	if ((st->st_mode & S_ISUID) && st->st_uid != as->fsuid)
		return "is setuid";
	if ((st->st_mode & S_ISGID) && (st->st_mode & S_IXGRP) && st->st_gid != as->fsgid)
		return "is setgid";
	return caps && as->fsuid ? "has file capabilities" : NULL;
}

void notice_exec(struct run *r, pid_t pid)
{
	char exe[64];
	struct stat st;
	struct identity as;
	struct buf text = {0};
	/* Natively there is no no_new_privs, where the filter needs none (tracer/spawn.c). */
	if (r->confine.open && (r->self.caps >> CAP_SYS_ADMIN & 1))
		return;
	snprintf(exe, sizeof exe, "/proc/%d/exe", pid);
	bool marked = !stat(exe, &st) && ((st.st_mode & (S_ISUID | S_ISGID)) ||
					  getxattr(exe, "security.capability", NULL, 0) > 0);
	if (!marked || identity_of(pid, &as))
		return;
	const char *what = privilege_of(exe, &st, &as);
	if (!what)
		return;
	char *file AUTOFREE = proc_link(pid, "exe");
	const char *slash = file ? strrchr(file, '/') : NULL;
	escape_add_fit(&text, slash ? slash + 1 : "?", NAME_WIDTH);
	buf_addf(&text, " %s; it ran without that privilege", what);
	if (has_text(r->unprivileged, buf_str(&text)))
		goto out;
	if (count_texts(r->unprivileged) < UNPRIVILEGED_MAX)
		r->unprivileged = add_text(r->unprivileged, "%s", buf_str(&text));
	else
		r->more_unprivileged = true;
out:
	buf_free(&text);
}

/* ---- into the report ---- */

/* A notice's text with its count in place of %u, and whose calls they were. */
static char **add_note(struct run *r, size_t kind, char **list)
{
	static const char times[] = "×";
	const char *native = r->confine.open ? notices[kind].native : NULL;
	const char *text = native ? native : notices[kind].text, *at = strstr(text, "%u");
	BUG(!at || strncmp(at + 2, times, sizeof times - 1) != 0);
	const char *names = buf_str(&r->noticed_of[kind]);
	return add_text(list, "%.*s%u%s%s%s%s%s", (int)(at - text), text, r->noticed[kind], times,
			*names ? " (" : "", names, *names ? ")" : "", at + 1 + sizeof times);
}

static void add_notes(struct run *r, bool told)
{
	struct report *rep = &r->out->report;
	for (size_t i = 0; i < RUN_NOTICES; i++)
		if (r->noticed[i] && notices[i].told == told)
			rep->engine.notes = add_note(r, i, rep->engine.notes);
}

void notice_report(struct run *r)
{
	struct report *rep = &r->out->report;
	uint64_t missing = r->ruleset && !r->confine.open ? llruleset_unenforced(r->ruleset) : 0;
	for (uint64_t bit = 1; bit && bit <= missing; bit <<= 1)
		if (missing & bit)
			rep->engine.degraded =
				add_text(rep->engine.degraded, "%s is not enforced by this kernel",
					 llright_name(bit));
	const char *lacks[TRACER_LACKS_MAX];
	size_t lacking = r->confine.open ? 0 : tracer_lacks(lacks);
	for (size_t i = 0; i < lacking; i++)
		rep->engine.degraded = add_text(rep->engine.degraded, "%s", lacks[i]);
	for (char **p = r->unprivileged; p && *p; p++)
		rep->engine.notes = add_text(rep->engine.notes, "%s", *p);
	if (r->more_unprivileged)
		rep->engine.notes =
			add_text(rep->engine.notes, "further programs ran without their privilege");
	add_notes(r, true);
	rep->engine.notes_told = count_texts(rep->engine.notes);
	add_notes(r, false);
}

void notice_release(struct run *r)
{
	for (char **p = r->unprivileged; p && *p; p++)
		free(*p);
	free(r->unprivileged);
	r->unprivileged = NULL;
	for (size_t i = 0; i < RUN_NOTICES; i++)
		buf_free(&r->noticed_of[i]);
}
