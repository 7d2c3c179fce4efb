#include "tracer/maps.h"

#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* ---- asking ---- */

/* include/uapi/linux/fs.h of 6.11. */
struct query {
	uint64_t size, flags, address;
	uint64_t start, end, vma_flags, page_size, offset, inode;
	uint32_t dev_major, dev_minor;
	uint32_t name_size, build_id_size;
	uint64_t name, build_id;
};

#define QUERY	     _IOWR('f', 17, struct query)
#define QUERY_WRITE  0x02
#define QUERY_EXEC   0x04
#define QUERY_SHARED 0x08

static int ask(int fd, uint64_t addr, struct maps_region *ret)
{
	struct query q = {.size = sizeof(q), .address = addr};

	if (ioctl(fd, QUERY, &q) < 0)
		return -errno;
	*ret = (struct maps_region){.start = q.start,
				    .end = q.end,
				    .offset = q.offset,
				    .dev = makedev(q.dev_major, q.dev_minor),
				    .ino = (ino_t)q.inode,
				    .exec = q.vma_flags & QUERY_EXEC,
				    .write = q.vma_flags & QUERY_WRITE,
				    .shared = q.vma_flags & QUERY_SHARED};
	return 0;
}

static bool same_file(const struct maps_region *a, const struct maps_region *b)
{
	return a->ino && a->ino == b->ino && a->dev == b->dev;
}

/* 0, -ENOENT; another error: the text knows better. */
static int ask_both(int fd, uint64_t addr, struct maps_region *ret, uint64_t *ret_base)
{
	struct maps_region here, first;
	int r = ask(fd, addr, &here);

	if (r < 0)
		return r;
	if (ret_base && here.ino) {
		/* Where segments lie in memory as in the file. */
		r = ask(fd, here.start - here.offset, &first);
		if (r < 0 || !same_file(&here, &first) || first.offset ||
		    first.start != here.start - here.offset)
			return -EOPNOTSUPP;
		*ret_base = first.start;
	} else if (ret_base) {
		*ret_base = 0;
	}
	*ret = here;
	return 0;
}

/* ---- reading ---- */

static bool parse(const char *line, struct maps_region *ret)
{
	unsigned long long start, end, offset, ino;
	unsigned major, minor;
	char perms[5];

	if (sscanf(line, "%llx-%llx %4s %llx %x:%x %llu", &start, &end, perms, &offset, &major,
		   &minor, &ino) != 7)
		return false;
	*ret = (struct maps_region){.start = start,
				    .end = end,
				    .offset = offset,
				    .dev = makedev(major, minor),
				    .ino = (ino_t)ino,
				    .exec = perms[2] == 'x',
				    .write = perms[1] == 'w',
				    .shared = perms[3] == 's'};
	return true;
}

/* A name may be longer than the buffer: what follows up to the newline is no line. */
static bool next_region(FILE *f, struct maps_region *ret)
{
	char line[512];
	bool begins = true;

	while (fgets(line, sizeof(line), f)) {
		bool whole = begins;
		begins = strchr(line, '\n') != NULL;
		if (whole && parse(line, ret))
			return true;
	}
	return false;
}

int maps_read(int fd, uint64_t addr, struct maps_region *ret, uint64_t *ret_base)
{
	struct maps_region here, first = {0}; /* segments follow one after the other */
	int own = dup(fd);
	FILE *f = own < 0 ? NULL : fdopen(own, "r");
	int r = -ENOENT;

	if (!f) {
		r = -errno;
		if (own >= 0)
			close(own);
		return r;
	}
	while (r && next_region(f, &here)) {
		if (here.ino && here.offset == 0)
			first = here;
		if (addr >= here.start && addr < here.end)
			r = 0;
	}
	fclose(f);
	if (r)
		return r;
	*ret = here;
	if (ret_base)
		*ret_base = same_file(&here, &first) ? first.start : 0;
	return 0;
}

int maps_each(pid_t pid, void (*f)(void *arg, const struct maps_region *where, uint64_t base),
	      void *arg)
{
	struct maps_region here, first = {0};
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	FILE *text = fopen(path, "re");
	if (!text)
		return -errno;
	while (next_region(text, &here)) {
		if (here.ino && here.offset == 0)
			first = here;
		f(arg, &here, same_file(&here, &first) ? first.start : 0);
	}
	fclose(text);
	return 0;
}

int maps_find(pid_t pid, uint64_t addr, struct maps_region *ret, uint64_t *ret_base)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	int fd AUTOCLOSE = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	int r = ask_both(fd, addr, ret, ret_base);
	return r == 0 || r == -ENOENT ? r : maps_read(fd, addr, ret, ret_base);
}
