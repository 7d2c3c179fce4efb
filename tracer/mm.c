#include "tracer/mm.h"

#include <stdlib.h>
#include <string.h>

struct mm *mm_new(void)
{
	struct mm *mm = calloc(1, sizeof(*mm));

	if (mm)
		mm->tasks = 1;
	return mm;
}

struct mm *mm_ref(struct mm *mm)
{
	mm->tasks++;
	return mm;
}

struct mm *mm_copy(const struct mm *mm)
{
	struct mm *copy = mm_new();

	if (!copy)
		return NULL;
	copy->closed = mm->closed;
	copy->signalled = mm->signalled;
	copy->filtered = mm->filtered;
	copy->surveyed = mm->surveyed;
	copy->site = mm->len ? malloc(mm->len * sizeof(*mm->site)) : NULL;
	if (!copy->site)
		return copy;
	memcpy(copy->site, mm->site, mm->len * sizeof(*mm->site));
	copy->len = copy->cap = mm->len;
	return copy;
}

void mm_unref(struct mm *mm)
{
	if (!mm || --mm->tasks)
		return;
	free(mm->site);
	free(mm);
}

struct mm_site *mm_known(const struct mm *mm, uint64_t ip)
{
	for (size_t i = 0; i < mm->len; i++)
		if (mm->site[i].ip == ip)
			return &mm->site[i];
	return NULL;
}

struct mm_site *mm_site(struct mm *mm, uint64_t ip)
{
	struct mm_site *known = mm_known(mm, ip);

	if (known)
		return known;
	if (mm->len == MM_SITES_MAX)
		return NULL;
	if (mm->len == mm->cap) {
		size_t cap = mm->cap ? 2 * mm->cap : 4;
		struct mm_site *more = reallocarray(mm->site, cap, sizeof(*more));
		if (!more)
			return NULL;
		mm->site = more;
		mm->cap = cap;
	}
	mm->site[mm->len] = (struct mm_site){.ip = ip};
	return &mm->site[mm->len++];
}

void mm_patched(struct mm *mm, struct mm_site *s, const struct stub_site *site, uint64_t stub)
{
	for (size_t i = 0; i < mm->len; i++) {
		struct mm_site *other = &mm->site[i];
		if (other->stub && other->stub < stub + STUB_SIZE && stub < other->stub + STUB_SIZE)
			*other = (struct mm_site){.ip = other->ip};
	}
	*s = (struct mm_site){.ip = s->ip, .stub = stub, .site = *site};
}

struct mm_site *mm_site_of_stub(const struct mm *mm, uint64_t ip)
{
	for (size_t i = 0; i < mm->len; i++)
		if (mm->site[i].stub && ip - mm->site[i].stub < STUB_SIZE)
			return &mm->site[i];
	return NULL;
}
