#include "supervisor/budget.h"

#include "supervisor/access.h"
#include "supervisor/breadth.h"
#include "tracer/util.h"

#include <errno.h>
#include <string.h>

int budget_add(struct budget *b, const char *path, uint32_t access)
{
	char *copy = strdup(path);
	if (!copy)
		return -ENOMEM;
	struct budget_answer *a = &b->kept[b->total++ % BUDGET_KEPT];
	free(a->path);
	*a = (struct budget_answer){.path = copy, .access = access};
	return 0;
}

/* Whoever was told about reading has not been told about writing. */
static bool same_letter(uint32_t a, uint32_t b)
{
	static const uint32_t letters[] = {ACCESS_R, ACCESS_W, ACCESS_X, ACCESS_CONNECT,
					   ACCESS_IOCTL};
	for (size_t i = 0; i < ARRAY_LEN(letters); i++)
		if (!(a & letters[i]) != !(b & letters[i]))
			return false;
	return true;
}

static size_t count_below(const struct budget *b, const char *path, size_t n, uint32_t access)
{
	size_t count = 0;
	for (size_t i = 0; i < BUDGET_KEPT && b->kept[i].path; i++) {
		const char *kept = b->kept[i].path;
		count += !strncmp(kept, path, n) && (kept[n] == '/' || !kept[n]) &&
			 same_letter(b->kept[i].access, access);
	}
	return count;
}

size_t budget_spent(const struct budget *b, const char *path, uint32_t access, const char *home)
{
	for (size_t n = strlen(path); n > 0; n--) {
		if (path[n] != '/')
			continue;
		if (breadth_is_wide(path, n, home) || breadth_is_volatile(path))
			return 0;
		if (count_below(b, path, n, access) >= BUDGET_MAX)
			return n;
	}
	return 0;
}

void budget_release(struct budget *b)
{
	for (size_t i = 0; i < BUDGET_KEPT; i++)
		free(b->kept[i].path);
	*b = (struct budget){0};
}
