#include "tracer/objmap.h"

#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#define LINE_MAX_LEN 8192 /* the columns, and a path of PATH_MAX */

/* A line of maps. */
struct line {
	uint64_t start, end, offset, dev, ino;
	bool exec;
	char *name; /* "" where there is none */
};

/* Where the file of the lines just read began. */
struct head {
	uint64_t dev, ino, base;
};

/* The kernel writes a newline in a path as \012, and nothing else otherwise than it is. */
static void undo_newlines(char *s)
{
	char *to = s;
	while (*s) {
		bool is = !strncmp(s, "\\012", 4);
		*to++ = is ? '\n' : *s;
		s += is ? 4 : 1;
	}
	*to = '\0';
}

static bool parse_line(char *text, struct line *ret)
{
	char perms[5];
	unsigned major, minor;
	int at = 0;
	if (sscanf(text, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n",
		   &ret->start, &ret->end, perms, &ret->offset, &major, &minor, &ret->ino,
		   &at) < 7 ||
	    !at)
		return false;
	ret->dev = makedev(major, minor);
	ret->exec = perms[2] == 'x';
	ret->name = text + at;
	undo_newlines(ret->name);
	return true;
}

static uint32_t keep_name(struct objmap *m, const char *name)
{
	size_t n = strlen(name) + 1;
	if (n == 1 || n > sizeof(m->names) - m->names_len)
		return 0;
	uint32_t at = (uint32_t)m->names_len;
	memcpy(m->names + at, name, n);
	m->names_len += n;
	return at;
}

static bool is_kernels(const char *name)
{
	return !strcmp(name, "[vdso]") || !strcmp(name, "[vsyscall]");
}

static int object_of(struct objmap *m, const struct line *l, const struct head *head)
{
	bool file = l->ino != 0;
	if (!file && !is_kernels(l->name))
		return -1;
	uint64_t base = l->offset == 0					     ? l->start
			: file && head->ino == l->ino && head->dev == l->dev ? head->base
									     : 0;
	for (size_t i = 0; i < m->objects; i++)
		if (m->object[i].base == base && m->object[i].ino == l->ino &&
		    m->object[i].dev == l->dev)
			return (int)i;
	if (m->objects == OBJMAP_OBJECTS_MAX)
		return -1;
	m->object[m->objects] = (struct objmap_object){.base = base,
						       .dev = l->dev,
						       .ino = l->ino,
						       .start = l->start,
						       .end = l->end,
						       .name = keep_name(m, l->name),
						       .fd = -1};
	return (int)m->objects++;
}

static void take_line(struct objmap *m, char *text, struct head *head)
{
	struct line l;
	if (!parse_line(text, &l))
		return;
	if (l.ino && l.offset == 0)
		*head = (struct head){l.dev, l.ino, l.start};
	if (!l.exec || m->codes == OBJMAP_CODES_MAX)
		return;
	int object = object_of(m, &l, head);
	if (object < 0 && m->loose == OBJMAP_LOOSE_MAX)
		return;
	m->loose += object < 0;
	m->code[m->codes++] = (struct objmap_code){
		.start = l.start, .end = l.end, .offset = l.offset, .object = object};
}

int objmap_read(struct objmap *m, pid_t tgid)
{
	char path[32], text[LINE_MAX_LEN];
	struct head head = {0};
	size_t have = 0, total = 0;
	m->names_len = 1;
	snprintf(path, sizeof(path), "/proc/%d/maps", tgid);
	int fd AUTOCLOSE = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	while (total < OBJMAP_TEXT_MAX) {
		ssize_t got = read(fd, text + have, sizeof(text) - 1 - have);
		if (got <= 0)
			return got < 0 ? -errno : 0;
		total += (size_t)got;
		have += (size_t)got;
		char *line = text, *end;
		while ((end = memchr(line, '\n', have - (size_t)(line - text)))) {
			*end = '\0';
			take_line(m, line, &head);
			line = end + 1;
		}
		have -= (size_t)(line - text);
		memmove(text, line, have);
		if (have == sizeof(text) - 1)
			have = 0; /* no line of the kernel's is so long */
	}
	return 0;
}

/* ---- files ---- */

/* A descriptor that can't be read yet: opening it touches nothing but the name. */
static int open_place(const struct objmap *m, const struct objmap_object *o, pid_t tgid,
		      bool *ret_by_path)
{
	char path[96];
	snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, tgid, o->start,
		 o->end);
	/* The mapped file itself, whatever became of its name; for CAP_CHECKPOINT_RESTORE alone. */
	int fd = open(path, O_PATH | O_CLOEXEC);
	*ret_by_path = fd < 0;
	return fd >= 0 ? fd : open(m->names + o->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
}

static int open_file(const struct objmap *m, struct objmap_object *o, pid_t tgid)
{
	char path[32];
	struct stat st;
	int place AUTOCLOSE = open_place(m, o, tgid, &o->by_path);
	if (place < 0 || fstat(place, &st) || !S_ISREG(st.st_mode) || st.st_ino != o->ino)
		return -1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", place);
	return open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

void objmap_open_files(struct objmap *m, pid_t tgid)
{
	for (size_t i = 0; i < m->objects; i++)
		if (m->object[i].ino && m->object[i].name)
			m->object[i].fd = open_file(m, &m->object[i], tgid);
}

const struct objmap_code *objmap_find(const struct objmap *m, uint64_t ip)
{
	for (size_t i = 0; i < m->codes; i++)
		if (ip >= m->code[i].start && ip < m->code[i].end)
			return &m->code[i];
	return NULL;
}
