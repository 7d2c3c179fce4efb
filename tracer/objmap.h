/*
 * objmap: a process's executable mappings, and the objects they are of. For the unwinding helper.
 *
 * From /proc/PID/maps and the ELF headers in the process's memory. The tracee shapes both: numbers
 * of everything are bounded, what is beyond is left out.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define OBJMAP_CODES_MAX 1536
#define OBJMAP_LOOSE_MAX                                                                           \
	512 /* of them, mappings of no file: a JIT's must not crowd out the others */
#define OBJMAP_OBJECTS_MAX 256
#define OBJMAP_NAMES_MAX   (128u << 10)
#define OBJMAP_TEXT_MAX	   (16u << 20) /* of /proc/PID/maps */

struct objmap_object {
	uint64_t base;	     /* where its ELF header is mapped; 0: it is not */
	uint64_t dev, ino;   /* ino 0: no file ([vdso]) */
	uint64_t start, end; /* its first executable mapping, as map_files names it */
	uint32_t name;	     /* in names; 0: none */
	int fd;		     /* of its file, for reading; -1: none */
	bool by_path;	     /* opened by its path: the content is still to be compared */
};

/* One executable mapping. */
struct objmap_code {
	uint64_t start, end, offset;
	int object; /* -1: of no file */
};

struct objmap {
	struct objmap_code code[OBJMAP_CODES_MAX];
	size_t codes;
	size_t loose; /* of no file */
	struct objmap_object object[OBJMAP_OBJECTS_MAX];
	size_t objects;
	char names[OBJMAP_NAMES_MAX]; /* the first byte is for nobody */
	size_t names_len;
};

/* m starts zeroed. 0; -ESRCH, -EACCES: the list can't be read. May block as its file does. */
int objmap_read(struct objmap *m, pid_t tgid);
/*
 * Opens the objects' files, where that is what is mapped: a regular file with the same inode
 * number. Neither a FIFO nor a device, a lease or a symlink put in its place is followed or waited
 * for. (The device number is no test: btrfs and overlayfs show another one in maps.)
 */
void objmap_open_files(struct objmap *m, pid_t tgid);
/* NULL: no code is there. */
const struct objmap_code *objmap_find(const struct objmap *m, uint64_t ip);
