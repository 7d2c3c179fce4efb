#include "supervisor/madenames.h"

#include "supervisor/breadth.h"
#include "supervisor/tempname.h"
#include "tracer/util.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#define SLOTS (MADENAMES_MAX * 2)

static const char *const shared_dirs[] = {"/tmp", "/var/tmp", "/dev/shm"};

/* The shared directory that the path is strictly below, and where the name in it ends. */
static const char *shared_dir(const char *path, size_t *ret_end)
{
	for (size_t i = 0; i < ARRAY_LEN(shared_dirs); i++) {
		size_t n = strlen(shared_dirs[i]);
		if (!breadth_is_below(path, shared_dirs[i]) || !path[n])
			continue;
		*ret_end = n + 1 + strcspn(path + n + 1, "/");
		return shared_dirs[i];
	}
	return NULL;
}

/* Where the first n bytes of the path stand, or would. */
static size_t slot_of(const struct madenames *m, const char *path, size_t n)
{
	uint64_t h = UINT64_C(14695981039346656037);
	for (size_t i = 0; i < n; i++)
		h = (h ^ (unsigned char)path[i]) * UINT64_C(1099511628211);
	size_t at = (size_t)(h ^ h >> 32) % SLOTS;
	while (m->slot[at] && (strlen(m->slot[at]) != n || memcmp(m->slot[at], path, n) != 0))
		at = (at + 1) % SLOTS;
	return at;
}

bool madenames_is_shared(const char *path)
{
	size_t end;
	return shared_dir(path, &end) && !path[end];
}

bool madenames_is(const char *path, pid_t pid)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	return tempname_has_pid(name, pid) ||
	       (madenames_is_shared(path) ? tempname_is_where_they_are(name) : tempname_is(name));
}

static bool is_by_lot(const char *path, size_t end)
{
	char *name AUTOFREE = strndup(path, end);
	return name && madenames_is(name, 0);
}

int madenames_add(struct madenames *m, const char *path, pid_t pid)
{
	size_t end;
	if (!shared_dir(path, &end) || path[end] || m->len == MADENAMES_MAX ||
	    !madenames_is(path, pid))
		return 0;
	if (!m->slot)
		m->slot = calloc(SLOTS, sizeof(*m->slot));
	if (!m->slot)
		return -ENOMEM;
	size_t at = slot_of(m, path, end);
	if (m->slot[at])
		return 0;
	m->slot[at] = strndup(path, end);
	if (!m->slot[at])
		return -ENOMEM;
	m->len++;
	return 0;
}

const char *madenames_dir(const struct madenames *m, const char *path)
{
	size_t end;
	const char *dir = shared_dir(path, &end);
	if (!dir || !m->slot)
		return NULL;
	if (m->slot[slot_of(m, path, end)])
		return dir;
	return m->len == MADENAMES_MAX && is_by_lot(path, end) ? dir : NULL;
}

void madenames_release(struct madenames *m)
{
	for (size_t i = 0; m->slot && i < SLOTS; i++)
		free(m->slot[i]);
	free(m->slot);
	*m = (struct madenames){0};
}
