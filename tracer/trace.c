#include "tracer/trace.h"

#include "tracer/straceimport.h"
#include "tracer/traceinput.h"
#include "tracer/tracejson.h"
#include "tracer/util.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* ---- words ---- */

const char *trace_thing_name(enum trace_thing t)
{
	static const char *const names[TRACE_THING_COUNT] = {
		[TRACE_THING_UNKNOWN] = "unknown", [TRACE_THING_ABSENT] = "absent",
		[TRACE_THING_FILE] = "file",	   [TRACE_THING_DIR] = "dir",
		[TRACE_THING_SYMLINK] = "symlink", [TRACE_THING_CHAR] = "char",
		[TRACE_THING_BLOCK] = "block",	   [TRACE_THING_FIFO] = "fifo",
		[TRACE_THING_SOCKET] = "socket"};
	return t < TRACE_THING_COUNT ? names[t] : "unknown";
}

enum trace_thing trace_thing_of_mode(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return TRACE_THING_FILE;
	case S_IFDIR:
		return TRACE_THING_DIR;
	case S_IFLNK:
		return TRACE_THING_SYMLINK;
	case S_IFCHR:
		return TRACE_THING_CHAR;
	case S_IFBLK:
		return TRACE_THING_BLOCK;
	case S_IFIFO:
		return TRACE_THING_FIFO;
	case S_IFSOCK:
		return TRACE_THING_SOCKET;
	default:
		return TRACE_THING_UNKNOWN;
	}
}

/* ---- which program a process runs ---- */

struct program {
	pid_t pid; /* 0: a free slot */
	char *exe, *argv0;
};

/*
 * Open addressing, a power of two, at most half full. A trace that never says of a process that it
 * ended could have millions: then it begins anew, and programs are not told until the next exec.
 */
#define PROGRAMS_MIN 64
#define PROGRAMS_MAX (1u << 17)

struct programs {
	struct program *slot;
	size_t cap, len;
};

static size_t home_of(const struct programs *p, pid_t pid)
{
	return (size_t)((uint32_t)pid * 2654435761u) & (p->cap - 1);
}

static struct program *find(const struct programs *p, pid_t pid)
{
	if (!p->cap)
		return NULL;
	for (size_t i = home_of(p, pid); p->slot[i].pid; i = (i + 1) & (p->cap - 1))
		if (p->slot[i].pid == pid)
			return &p->slot[i];
	return NULL;
}

static void forget_all(struct programs *p)
{
	for (size_t i = 0; i < p->cap; i++) {
		free(p->slot[i].exe);
		free(p->slot[i].argv0);
	}
	free(p->slot);
	*p = (struct programs){0};
}

static void place(struct programs *p, struct program one)
{
	size_t i = home_of(p, one.pid);
	while (p->slot[i].pid)
		i = (i + 1) & (p->cap - 1);
	p->slot[i] = one;
	p->len++;
}

static int grow(struct programs *p)
{
	struct programs more = {.cap = p->cap ? p->cap * 2 : PROGRAMS_MIN};
	if (more.cap > PROGRAMS_MAX) {
		forget_all(p);
		more.cap = PROGRAMS_MIN;
	}
	more.slot = calloc(more.cap, sizeof *more.slot);
	if (!more.slot)
		return -ENOMEM;
	for (size_t i = 0; i < p->cap; i++)
		if (p->slot[i].pid)
			place(&more, p->slot[i]);
	free(p->slot);
	*p = more;
	return 0;
}

/* What follows a freed slot may have been pushed on by it. */
static void forget(struct programs *p, pid_t pid)
{
	struct program *gone = find(p, pid);
	if (!gone)
		return;
	free(gone->exe);
	free(gone->argv0);
	*gone = (struct program){0};
	p->len--;
	for (size_t i = ((size_t)(gone - p->slot) + 1) & (p->cap - 1); p->slot[i].pid;
	     i = (i + 1) & (p->cap - 1)) {
		struct program moved = p->slot[i];
		p->slot[i] = (struct program){0};
		p->len--;
		place(p, moved);
	}
}

/* Copies. 0 or -ENOMEM. */
static int remember(struct programs *p, pid_t pid, const char *exe, const char *argv0)
{
	struct program one = {
		.pid = pid, .exe = exe ? strdup(exe) : NULL, .argv0 = argv0 ? strdup(argv0) : NULL};
	bool ok = (!exe || one.exe) && (!argv0 || one.argv0);
	forget(p, pid);
	if (ok && (p->len + 1) * 2 > p->cap)
		ok = !grow(p);
	if (!ok) {
		free(one.exe);
		free(one.argv0);
		return -ENOMEM;
	}
	place(p, one);
	return 0;
}

/* ---- reading ---- */

struct trace_reader {
	struct trace_source source;
	char *name;
	struct programs programs;
	pid_t gone; /* ended by the last event: forgotten with the next */
};

int trace_open_source(const char *name, struct trace_source source, struct trace_reader **ret)
{
	struct trace_reader *r = calloc(1, sizeof *r);
	char *copy = strdup(name);
	if (!r || !copy) {
		free(r);
		free(copy);
		source.free(source.self);
		return -ENOMEM;
	}
	*r = (struct trace_reader){.source = source, .name = copy};
	*ret = r;
	return 0;
}

static int complain(struct trace_error *ret, const char *file, const char *what)
{
	snprintf(ret->text, sizeof ret->text, "%s: %s", file, what);
	return 0;
}

/* The format is told by the first line that says anything. Takes the input over. */
static int choose(struct traceinput *in, const struct trace_options *o, struct trace_source *ret,
		  struct trace_error *ret_error)
{
	char *line;
	size_t n;
	int got;
	do {
		got = traceinput_line(in, &line, &n);
	} while (got > 0 && strspn(line, " \t\r") == n);
	if (got > 0 && tracejson_is_header(line, n)) {
		traceinput_back(in);
		return tracejson_open(in, ret, ret_error);
	}
	if (got > 0 && straceimport_is(line, n)) {
		traceinput_back(in);
		return straceimport_open(in, o, ret);
	}
	bool cut = got == 0 && traceinput_is_cut_off(in);
	const char *what = cut		     ? "the compressed data is cut off before a whole line"
			   : got == 0	     ? "it is empty: no trace"
			   : got > 0	     ? "expected a trace"
			   : got == -E2BIG   ? "expected a trace: a line of JSON"
			   : got == -EBADMSG ? "the compressed data is damaged"
					     : strerror(-got);
	if (got > 0)
		snprintf(ret_error->text, sizeof ret_error->text,
			 "%s:%llu: expected a trace's first line, {\"warder_trace\":1,...}, or "
			 "strace's text",
			 traceinput_name(in), (unsigned long long)traceinput_number(in));
	else
		complain(ret_error, traceinput_name(in), what);
	traceinput_close(in);
	return got == -ENOMEM || got == -EIO ? got : -EINVAL;
}

int trace_open_input(struct traceinput *in, const struct trace_options *o,
		     struct trace_reader **ret, struct trace_error *ret_error)
{
	struct trace_source source;
	char *name = strdup(traceinput_name(in));
	int err = name ? choose(in, o, &source, ret_error) : -ENOMEM;
	if (!name)
		traceinput_close(in);
	if (!err)
		err = trace_open_source(name, source, ret);
	free(name);
	return err;
}

int trace_open(const char *file, const struct trace_options *o, struct trace_reader **ret,
	       struct trace_error *ret_error)
{
	struct traceinput *in;
	int err = traceinput_open(file, &in);
	if (!err)
		return trace_open_input(in, o, ret, ret_error);
	complain(ret_error, file, traceinput_trouble(err));
	return err;
}

int trace_open_first(const char *const *files, size_t n, const struct trace_options *o,
		     struct trace_reader **ret, size_t *ret_n, struct trace_error *ret_error)
{
	struct trace_source source;
	size_t k = straceimport_together(files, n);
	int err = k == 1 ? trace_open(files[0], o, ret, ret_error)
			 : straceimport_open_family(files, k, o, &source, ret_error);
	if (!err && k > 1)
		err = trace_open_source(files[0], source, ret);
	if (!err)
		*ret_n = k;
	return err;
}

void trace_close(struct trace_reader *r)
{
	if (!r)
		return;
	r->source.free(r->source.self);
	forget_all(&r->programs);
	free(r->name);
	free(r);
}

const struct trace_header *trace_header(const struct trace_reader *r)
{
	return r->source.header(r->source.self);
}

const char *trace_name(const struct trace_reader *r)
{
	return r->name;
}

/* Whose event it is; and what it changes of that. */
static int follow(struct trace_reader *r, struct trace_event *ev)
{
	const struct program *p;
	int err = 0;
	if (r->gone)
		forget(&r->programs, r->gone);
	r->gone = ev->kind == TRACE_EXIT ? ev->pid : 0;
	if (ev->kind == TRACE_EXEC) {
		err = remember(&r->programs, ev->pid, ev->exe, ev->argv0);
	} else if (ev->kind == TRACE_FORK && !ev->thread) {
		p = find(&r->programs, ev->pid);
		if (p)
			err = remember(&r->programs, ev->child, p->exe, p->argv0);
	}
	p = find(&r->programs, ev->pid);
	if (!err && p && !ev->exe) {
		ev->exe = p->exe;
		ev->argv0 = p->argv0;
	}
	return err;
}

int trace_next(struct trace_reader *r, struct trace_event *ret, struct trace_error *ret_error)
{
	int got = r->source.next(r->source.self, ret, ret_error);
	if (got <= 0)
		return got;
	int err = follow(r, ret);
	if (err)
		complain(ret_error, r->name, "no memory");
	return err ? err : 1;
}

bool trace_is_complete(const struct trace_reader *r)
{
	return r->source.is_complete(r->source.self);
}

uint64_t trace_faults(const struct trace_reader *r)
{
	return r->source.faults ? r->source.faults(r->source.self) : 0;
}
