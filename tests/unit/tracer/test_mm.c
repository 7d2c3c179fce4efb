#include "tracer/mm.h"

#include <criterion/criterion.h>

Test(mm, sites_up_to_the_limit)
{
	struct mm *mm = mm_new();

	for (uint64_t ip = 1; ip <= MM_SITES_MAX; ip++) {
		struct mm_site *s = mm_site(mm, ip);
		cr_assert_not_null(s);
		cr_expect_eq(s->ip, ip);
		cr_expect_eq(s->hits, 0u);
		s->hits = (unsigned)ip;
	}
	cr_expect_null(mm_site(mm, MM_SITES_MAX + 1));
	for (uint64_t ip = 1; ip <= MM_SITES_MAX; ip++)
		cr_expect_eq(mm_site(mm, ip)->hits, ip);
	mm_unref(mm);
}

/* What a fork copies goes its own way, in room of its own. */
Test(mm, a_copy_grows_by_itself)
{
	for (uint64_t n = 0; n < MM_SITES_MAX; n++) {
		struct mm *mm = mm_new();
		for (uint64_t ip = 1; ip <= n; ip++)
			mm_site(mm, ip)->hits = 7;
		mm->closed = mm->filtered = mm->signalled = n % 2;
		struct mm *copy = mm_copy(mm);
		cr_expect_eq(copy->len, n);
		cr_expect_eq(copy->closed, mm->closed);
		cr_expect_eq(copy->signalled, mm->signalled);
		cr_expect_eq(copy->filtered, mm->filtered);
		cr_expect_eq(copy->tasks, 1u);
		for (uint64_t ip = 1; ip <= MM_SITES_MAX; ip++)
			mm_site(copy, ip)->hits++;
		cr_expect_eq(mm->len, n);
		for (uint64_t ip = 1; ip <= n; ip++)
			cr_expect_eq(mm_site(mm, ip)->hits, 7u);
		mm_unref(mm);
		cr_expect_eq(mm_site(copy, 1)->hits, n ? 8u : 1u);
		mm_unref(copy);
	}
}

Test(mm, lives_as_long_as_its_tasks)
{
	struct mm *mm = mm_new();

	cr_expect_eq(mm_ref(mm), mm);
	cr_expect_eq(mm->tasks, 2u);
	mm_site(mm, 1);
	mm_unref(mm);
	cr_expect_eq(mm->tasks, 1u);
	cr_expect_eq(mm_site(mm, 1)->ip, 1u);
	mm_unref(mm);
	mm_unref(NULL);
}

/* An object that was unmapped leaves its sites behind; another's stub comes to the same place. */
Test(mm, a_new_stub_takes_an_old_ones_place)
{
	struct mm *mm = mm_new();
	struct stub_site site = {.syscall = 98};

	mm_patched(mm, mm_site(mm, 1), &site, 10000);
	mm_patched(mm, mm_site(mm, 2), &site, 10000 + STUB_SIZE);
	cr_expect_eq(mm_site_of_stub(mm, 9999), NULL);
	cr_expect_eq(mm_site_of_stub(mm, 10000)->ip, 1u);
	cr_expect_eq(mm_site_of_stub(mm, 10000 + STUB_SIZE - 1)->ip, 1u);
	cr_expect_eq(mm_site_of_stub(mm, 10000 + STUB_SIZE)->ip, 2u);
	mm_patched(mm, mm_site(mm, 3), &site, 10000 + STUB_SIZE - 16);
	cr_expect_null(mm_site_of_stub(mm, 10000));
	cr_expect_eq(mm_site_of_stub(mm, 10000 + STUB_SIZE)->ip, 3u);
	cr_expect_eq(mm_site(mm, 1)->stub, 0u);
	cr_expect_eq(mm_site(mm, 2)->stub, 0u);
	/* Again at its own place. */
	mm_patched(mm, mm_site(mm, 3), &site, 10000 + STUB_SIZE - 16);
	cr_expect_eq(mm_site(mm, 3)->stub, 10000u + STUB_SIZE - 16);
	cr_expect_eq(mm->len, 3u);
	mm_unref(mm);
}
