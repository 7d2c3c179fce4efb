#include "tracer/maps.h"

#include "tracer/util.h"

#include <errno.h>
#include <stdio.h>
#include <sys/sysmacros.h>

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
				    .exec = perms[2] == 'x'};
	return true;
}

/* The last place where a file's first page was met: its segments follow one after the other. */
struct base {
	uint64_t at;
	dev_t dev;
	ino_t ino;
};

int maps_find(pid_t pid, uint64_t addr, struct maps_region *ret, uint64_t *ret_base)
{
	char path[64], line[512];
	struct base base = {0};
	struct maps_region here;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	FILE *f = fopen(path, "re");
	if (!f)
		return -errno;
	int r = -ENOENT;
	while (r && fgets(line, sizeof(line), f)) {
		if (!parse(line, &here))
			continue; /* the rest of a long name */
		if (here.ino && here.offset == 0)
			base = (struct base){here.start, here.dev, here.ino};
		if (addr >= here.start && addr < here.end)
			r = 0;
	}
	fclose(f);
	if (r)
		return r;
	*ret = here;
	if (ret_base)
		*ret_base = base.ino == here.ino && base.dev == here.dev ? base.at : 0;
	return 0;
}
