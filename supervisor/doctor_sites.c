/*
 * How fast what runs here can be: of the C libraries, their loaders and the interpreters that make
 * calls themselves, how many of the calls that are watched could be made without a stop.
 */
#include "supervisor/doctor_probes.h"

#include "supervisor/environ.h"
#include "tracer/clock.h"
#include "tracer/tracer.h"
#include "tracer/util.h"

#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

/* Takes note of a file. -ENOEXEC: it is none that could be looked at (a script, say). */
static int look_at(struct doctor *d, const char *path, const char *name)
{
	struct doctor_file *all;
	struct sites sites;
	char real[PATH_MAX];

	if (!realpath(path, real))
		return -errno;
	for (size_t i = 0; i < d->files; i++)
		if (!strcmp(d->file[i].path, real))
			return 0;
	int err = sites_count(real, &sites);
	if (err)
		return err;
	all = realloc(d->file, (d->files + 1) * sizeof *all);
	if (!all)
		return -ENOMEM;
	d->file = all;
	struct doctor_file *f = &all[d->files];
	*f = (struct doctor_file){.path = strdup(real), .name = strdup(name), .sites = sites};
	d->files++;
	return f->path && f->name ? 0 : -ENOMEM;
}

static const char *last_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

static void look(struct doctor *d, const char *path)
{
	if (look_at(d, path, last_of(path)) == -ENOMEM)
		d->failed = true;
}

static void look_at_all(struct doctor *d, const char *pattern)
{
	glob_t found = {0};
	if (!glob(pattern, 0, NULL, &found))
		for (size_t i = 0; i < found.gl_pathc; i++)
			look(d, found.gl_pathv[i]);
	globfree(&found);
}

/* ---- which ---- */

/* Libraries of interpreters that lie beside the C library. */
static void look_beside(struct doctor *d, const char *libc)
{
	static const char *const names[] = {"libuv.so.1", "libnode.so.[0-9]*",
					    "libpython3*.so.[0-9]*"};
	char pattern[PATH_MAX];

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (snprintf(pattern, sizeof pattern, "%.*s%s", (int)(last_of(libc) - libc), libc,
			     names[i]) < (int)sizeof pattern)
			look_at_all(d, pattern);
}

/* What this program itself runs on is what the others do. */
static int look_at_own(struct dl_phdr_info *info, size_t size, void *arg)
{
	static const char *const names[] = {"ld-linux", "libc.so", "libpthread.so"};
	const char *name = info->dlpi_name ? last_of(info->dlpi_name) : "";

	(void)size;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (!strncmp(name, names[i], strlen(names[i])))
			look(arg, info->dlpi_name);
	if (!strncmp(name, "libc.so", 7))
		look_beside(arg, info->dlpi_name);
	return 0;
}

/* The first on PATH that is a program itself, not a script that finds one. */
static void look_on_path(struct doctor *d, const char *name)
{
	const char *dir = environ_get(d->env, "PATH");
	char path[PATH_MAX];

	while (dir && *dir) {
		size_t n = strcspn(dir, ":");
		int len = snprintf(path, sizeof path, "%.*s/%s", (int)n, dir, name);
		int err = *dir == '/' && len < (int)sizeof path ? look_at(d, path, name) : -ENOENT;
		if (!err)
			return;
		if (err == -ENOMEM)
			d->failed = true;
		dir += n + (dir[n] == ':');
	}
}

static void look_at_this_machine(struct doctor *d)
{
	static const char *const programs[] = {"python3", "node", "go"};

	dl_iterate_phdr(look_at_own, d);
	look_at_all(d, "/lib/ld-musl-*.so.1");
	for (size_t i = 0; i < ARRAY_LEN(programs); i++)
		look_on_path(d, programs[i]);
}

/* ---- what was found ---- */

static void write_counts(const struct doctor *d, struct buf *out)
{
	const char *between = "";

	for (size_t i = 0; i < d->files; i++) {
		const struct doctor_file *f = &d->file[i];
		if (!f->sites.calls)
			continue;
		buf_addf(out, "%s%s %u of %u", between, f->name, f->sites.can, f->sites.calls);
		if (f->sites.room < f->sites.can)
			buf_addf(out, " (room for %u)", f->sites.room);
		between = ", ";
	}
	if (!*between)
		buf_add_str(out, "none found");
	between = "; none of their own: ";
	for (size_t i = 0; i < d->files; i++) {
		if (d->file[i].sites.calls)
			continue;
		buf_addf(out, "%s%s", between, d->file[i].name);
		between = ", ";
	}
}

/* The first that has a place which can't be changed; NULL: none has. */
static const struct doctor_file *first_slow(const struct doctor *d)
{
	for (size_t i = 0; i < d->files; i++)
		if (d->file[i].sites.left_len)
			return &d->file[i];
	return NULL;
}

void doctor_probe_sites(struct doctor *d, const char *probe)
{
	struct buf text = {0};
	int64_t begin = clock_us();

	if (!tracer_has_fast()) {
		doctor_find(d, probe, DOCTOR_OK,
			    "no call goes without an interruption on this machine");
		return;
	}
	look_at_this_machine(d);
	write_counts(d, &text);
	const struct doctor_file *slow = first_slow(d);
	struct doctor_finding *f = doctor_find(
		d, probe, slow ? DOCTOR_DEGRADED : DOCTOR_OK,
		"places where files are opened, and how many can go without an interruption: %s",
		buf_str(&text));
	f->took_us = clock_us() - begin;
	if (slow)
		doctor_fix(d, f,
			   "nothing is less safe, only slower: %s at 0x%llx of %s is interrupted "
			   "at each call; warder doctor --json lists all such places",
			   slow->sites.left[0].call, (unsigned long long)slow->sites.left[0].offset,
			   slow->path);
	if (buf_error(&text))
		d->failed = true;
	buf_free(&text);
}
