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

/* Does the file begin with the exec of strace's own child? */
static bool begins_with_exec(const char *file)
{
	struct traceinput *in = NULL;
	struct straceline line = {0};
	char *text = NULL;
	size_t len = 0;
	if (traceinput_open(file, &in) < 0)
		return false;
	if (traceinput_line(in, &text, &len) == 1)
		straceline_parse(text, len, &line);
	bool is = line.kind == STRACELINE_CALL && strace_span_is(line.name, "execve");
	traceinput_close(in);
	return is;
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
			 strerror(-r));
		return r;
	}
	in->file_pid = f->pid[at];
	return 1;
}
