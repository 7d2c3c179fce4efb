#include "tracer/stracepath.h"

#include "tracer/path.h"
#include "tracer/util.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

/* Where the walk stands. */
struct walk {
	const struct stracepath_view *v;
	struct buf *out;  /* the directory reached so far, without a slash at its end */
	struct buf todo;  /* the text still to be walked */
	size_t at;	  /* the place in it */
	const char *root; /* "" or without a slash at its end; NULL: not told */
	size_t root_len;  /* ".." stops there */
	unsigned links;
	struct strace_unsure *u;
};

void strace_unsure_add(struct strace_unsure *u, const char *why)
{
	for (unsigned i = 0; i < u->len; i++)
		if (!strcmp(u->why[i], why))
			return;
	if (u->len < TRACE_UNSURE_MAX)
		u->why[u->len++] = why;
}

static void set(struct buf *b, const char *s)
{
	buf_reset(b);
	buf_add_str(b, s);
}

static void cut(struct buf *b, size_t len)
{
	b->len = len;
	if (b->data)
		b->data[len] = '\0';
}

static int go_to_root(struct walk *w)
{
	if (!w->root) {
		strace_unsure_add(w->u, "the root directory of its process is not told");
		return -ENOENT;
	}
	set(w->out, w->root);
	w->root_len = w->out->len;
	return 0;
}

static void go_up(struct walk *w)
{
	const char *text = buf_str(w->out);
	const char *slash = strrchr(text, '/');
	size_t len = slash ? (size_t)(slash - text) : 0;
	cut(w->out, len < w->root_len && w->out->len >= w->root_len ? w->root_len : len);
}

/* `to` is walked next, and then the rest. */
static int go_through(struct walk *w, const char *to)
{
	struct buf todo = {.max = 4 * PATH_MAX};
	if (++w->links > PATH_LINKS_MAX)
		return -ELOOP;
	if (*to == '/') {
		int r = go_to_root(w);
		if (r < 0)
			return r;
	} else {
		go_up(w);
	}
	buf_add_str(&todo, to);
	buf_add_char(&todo, '/');
	buf_add_str(&todo, buf_str(&w->todo) + w->at);
	buf_free(&w->todo);
	w->todo = todo;
	w->at = 0;
	return buf_error(&todo) == -EFBIG ? -ENAMETOOLONG : buf_error(&todo);
}

/* Another place, known by its real path. */
static int jump(struct walk *w, const char *real)
{
	if (++w->links > PATH_LINKS_MAX)
		return -ELOOP;
	if (!real || *real != '/') {
		strace_unsure_add(w->u, "where a link of /proc led is not told");
		return -ENOENT;
	}
	set(w->out, strcmp(real, "/") != 0 ? real : "");
	return 0;
}

/* A decimal number up to a slash or the end; -1. */
static long number_in(const char **text)
{
	char *end = NULL;
	if (**text < '0' || **text > '9')
		return -1;
	long n = strtol(*text, &end, 10);
	if ((*end && *end != '/') || n > INT_MAX)
		return -1;
	*text = end;
	return n;
}

/*
 * /proc/self and /proc/thread-self are followed wherever they stand. 1: it was one of them.
 */
static int self_link(struct walk *w, const char *here)
{
	const struct straceproc *p = w->v->p;
	char to[64];
	if (!strcmp(here, "/proc/self"))
		snprintf(to, sizeof(to), "/proc/%d", p->tgid);
	else if (!strcmp(here, "/proc/thread-self"))
		snprintf(to, sizeof(to), "/proc/%d/task/%d", p->tgid, p->pid);
	else
		return 0;
	if (!p->tgid)
		return 0;
	int r = jump(w, to);
	return r < 0 ? r : 1;
}

/* Links that every Linux has: what they lead to is known by the process. 1: it was one of them. */
static int magic_link(struct walk *w)
{
	static const char *const devices[] = {"/dev/stdin", "/dev/stdout", "/dev/stderr"};
	const char *here = buf_str(w->out);
	int r = 0;
	for (size_t i = 0; i < ARRAY_LEN(devices); i++)
		if (!strcmp(here, devices[i])) {
			char to[32];
			snprintf(to, sizeof(to), "/proc/self/fd/%zu", i);
			r = go_through(w, to);
			return r < 0 ? r : 1;
		}
	if (!strcmp(here, "/dev/fd")) {
		r = go_through(w, "/proc/self/fd");
		return r < 0 ? r : 1;
	}
	if (strncmp(here, "/proc/", 6) != 0)
		return 0;
	const char *rest = here + 6;
	long pid = !strncmp(rest, "self/", 5) ? w->v->p->tgid : number_in(&rest);
	rest = strchr(rest, '/');
	if (pid < 0 || !rest)
		return 0;
	if (!strncmp(rest, "/task/", 6)) {
		rest += 6;
		if (number_in(&rest) < 0)
			return 0;
	}
	const struct straceproc *p = straceprocs_find(w->v->procs, (pid_t)pid);
	bool known = p && !p->ended;
	if (!strncmp(rest, "/fd/", 4)) {
		rest += 4;
		long fd = number_in(&rest);
		if (fd < 0 || *rest)
			return 0;
		const struct stracefd *at = known ? straceproc_fd(p, (int)fd) : NULL;
		r = jump(w, at ? at->path : NULL);
	} else if (!strcmp(rest, "/cwd")) {
		r = jump(w, known ? p->fs->cwd : NULL);
	} else if (!strcmp(rest, "/root")) {
		r = jump(w, !known ? NULL : p->fs->root && !*p->fs->root ? "/" : p->fs->root);
	} else if (!strcmp(rest, "/exe")) {
		r = jump(w, known ? p->exe : NULL);
	} else {
		return 0;
	}
	return r < 0 ? r : 1;
}

/* The name reached is followed, if it is known as a symlink. */
static int follow(struct walk *w)
{
	int r = magic_link(w);
	if (r != 0)
		return r < 0 ? r : 0;
	const struct stracename *link = stracenames_link_at(w->v->names, buf_str(w->out));
	if (!link)
		return 0;
	if (!link->to) {
		strace_unsure_add(w->u, "a symlink is on the way, and where it leads is not told");
		return 0;
	}
	return link->resolved ? jump(w, link->to) : go_through(w, link->to);
}

/* One component of the text. */
static int step(struct walk *w, bool follow_last)
{
	const char *text = buf_str(&w->todo) + w->at;
	size_t len = strcspn(text, "/");
	size_t slashes = strspn(text + len, "/");
	bool last = !slashes;
	w->at += len + slashes;
	if (!len || (len == 1 && *text == '.'))
		return 0;
	if (len == 2 && !strncmp(text, "..", 2)) {
		go_up(w);
		return 0;
	}
	if (len > NAME_MAX || w->out->len + len + 1 >= PATH_MAX)
		return -ENAMETOOLONG;
	buf_add_char(w->out, '/');
	buf_add(w->out, text, len);
	int r = self_link(w, buf_str(w->out));
	if (r != 0)
		return r < 0 ? r : 0;
	return last && !follow_last ? 0 : follow(w);
}

int stracepath_walk(const struct stracepath_view *v, const struct stracepath_name *name,
		    struct buf *out, struct strace_unsure *u)
{
	struct walk w = {.v = v, .out = out, .todo = {.max = 4 * PATH_MAX}, .u = u};

	if (strlen(name->given) >= PATH_MAX)
		return -ENAMETOOLONG;
	if (v->p->fs->strange)
		strace_unsure_add(u, "mounts were changed: the name may be another's elsewhere");
	w.root = !name->scoped ? v->p->fs->root : strcmp(name->base, "/") != 0 ? name->base : "";
	int r = go_to_root(&w);
	if (r == 0 && *name->given != '/')
		set(out, strcmp(name->base, "/") != 0 ? name->base : "");
	buf_add_str(&w.todo, name->given);
	while (r == 0 && w.at < w.todo.len)
		r = step(&w, name->follow);
	if (r == 0 && !out->len)
		buf_add_char(out, '/');
	if (r == 0)
		r = buf_error(out) ? buf_error(out) : buf_error(&w.todo);
	buf_free(&w.todo);
	return r;
}

void stracepath_learn(struct stracenames *names, const char *walked, const char *real)
{
	if (*real != '/' || !strncmp(real, "/proc/", 6) || !strncmp(walked, "/proc/", 6))
		return;
	if (!strcmp(walked, real)) {
		/* What was known as a symlink is none any more. */
		if (stracenames_link_at(names, walked))
			stracenames_forget(names, walked);
		return;
	}
	stracenames_resolve(names, walked, real);
}
