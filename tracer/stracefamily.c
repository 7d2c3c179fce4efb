/*
 * The files of strace -ff, one a process. A process begins with what its creator had when it made
 * it, so a file is read after the one in which its number was born; nothing else orders them.
 */
#include "tracer/straceimport_inside.h"

#include "tracer/util.h"

#include <errno.h>
#include <string.h>

bool straceimport_family(const char *file, pid_t *ret_pid, size_t *ret_len)
{
	const char *dot = strrchr(file, '.');
	uint64_t pid = 0;
	if (!dot || !dot[1] || strchr(dot, '/') || strspn(dot + 1, "0123456789") != strlen(dot + 1))
		return false;
	for (const char *p = dot + 1; *p && pid < INT32_MAX; p++)
		pid = pid * 10 + (uint64_t)(*p - '0');
	if (!pid || pid >= INT32_MAX)
		return false;
	*ret_pid = (pid_t)pid;
	*ret_len = (size_t)(dot - file) + 1;
	return true;
}

int stracefamily_take(struct straceimport *in, const char *const *files, size_t n)
{
	struct strace_family *f = &in->family;
	f->name = calloc(n, sizeof(char *));
	f->pid = calloc(n, sizeof(*f->pid));
	f->is_read = calloc(n, sizeof(*f->is_read));
	if (!f->name || !f->pid || !f->is_read)
		return -ENOMEM;
	for (; f->len < n; f->len++) {
		size_t ignored = 0;
		if (!straceimport_family(files[f->len], &f->pid[f->len], &ignored))
			return -EINVAL;
		f->name[f->len] = strdup(files[f->len]);
		if (!f->name[f->len])
			return -ENOMEM;
	}
	return 0;
}

void stracefamily_release(struct strace_family *f)
{
	for (size_t i = 0; i < f->len; i++)
		free(f->name[i]);
	free(f->name);
	free(f->pid);
	free(f->is_read);
	*f = (struct strace_family){0};
}

/* The first line of a file; false: it can't be read. `ret` points to nothing any more. */
static bool first_line(const char *file, struct straceline *ret, bool *ret_is_exec)
{
	struct traceinput *in = NULL;
	char *text = NULL;
	size_t len = 0;
	if (traceinput_open(file, &in) < 0)
		return false;
	bool got = traceinput_line(in, &text, &len) == 1;
	if (got) {
		straceline_parse(text, len, ret);
		*ret_is_exec = ret->kind == STRACELINE_CALL && strace_span_is(ret->name, "execve");
	}
	traceinput_close(in);
	return got;
}

/* Does the file begin with the exec of strace's own child? */
static bool begins_with_exec(const char *file)
{
	struct straceline line;
	bool is = false;
	return first_line(file, &line, &is) && is;
}

size_t straceimport_together(const char *const *files, size_t n)
{
	struct straceline line;
	bool ignored = false;
	pid_t pid = 0;
	size_t len = 0;
	size_t other = 0;
	size_t k = 1;
	if (n < 2 || !straceimport_family(files[0], &pid, &len))
		return 1;
	while (k < n && straceimport_family(files[k], &pid, &other) && other == len &&
	       !memcmp(files[k], files[0], len))
		k++;
	if (k == 1 || !first_line(files[0], &line, &ignored) || line.pid ||
	    line.kind == STRACELINE_BAD || line.kind == STRACELINE_NOTHING)
		return 1;
	return k;
}

/* Which is to be read next: one that was born; the first of all; else by number. */
static size_t choose(const struct straceimport *in)
{
	const struct strace_family *f = &in->family;
	size_t lowest = f->len;
	for (size_t i = 0; i < f->len; i++) {
		const struct straceproc *p = straceprocs_find(&in->procs, f->pid[i]);
		if (f->is_read[i])
			continue;
		if ((p && !p->ended) || (!in->started && begins_with_exec(f->name[i])))
			return i;
		if (lowest == f->len || f->pid[i] < f->pid[lowest])
			lowest = i;
	}
	return lowest;
}

int stracefamily_next(struct straceimport *in, struct trace_error *ret_error)
{
	struct strace_family *f = &in->family;
	size_t at = choose(in);
	if (at == f->len)
		return 0;
	f->is_read[at] = true;
	traceinput_close(in->file);
	in->file = NULL;
	int r = traceinput_open(f->name[at], &in->file);
	if (r < 0) {
		snprintf(ret_error->text, sizeof(ret_error->text), "%s: %s", f->name[at],
			 traceinput_trouble(r));
		return r;
	}
	in->file_pid = f->pid[at];
	return 1;
}
