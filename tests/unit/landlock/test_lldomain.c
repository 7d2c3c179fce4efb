/* Layers: what each has a say in, and what they grant together. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "landlock/lldomain.h"
#include "landlock/llright.h"

static struct llabi here;

static void setup(void)
{
	if (llabi_detect(&here) < 0 || here.abi < 6)
		cr_skip_test("no Landlock with scopes here");
}

TestSuite(lldomain, .init = setup, .timeout = 30);

/* A layer that handles these rights, or none but a scope. */
static struct llruleset *layer(uint64_t fs)
{
	struct llabi abi = here;
	struct llruleset *rs = NULL;

	abi.fs = fs;
	cr_assert_eq(llruleset_new(&abi, fs ? 0 : LLR_SCOPE_SIGNAL, &rs), 0);
	return rs;
}

static struct lldomain of(struct llruleset *a, struct llruleset *b)
{
	struct lldomain d = lldomain_on(&here);

	cr_assert_eq(lldomain_push(&d, a), 0);
	if (b)
		cr_assert_eq(lldomain_push(&d, b), 0);
	return d;
}

Test(lldomain, no_layer_and_one_without_files_refuse_nothing)
{
	static const struct lldomain_rights none;
	struct lldomain d = lldomain_on(&here);
	struct llruleset *scope = layer(0);

	cr_expect_not(lldomain_is_asked(&d));
	cr_expect_eq(lldomain_granted(&d, &none), (uint64_t)LLR_ALL);
	d = of(scope, NULL);
	cr_expect_not(lldomain_is_asked(&d));
	cr_expect_eq(lldomain_granted(&d, &none), (uint64_t)LLR_ALL);
	llruleset_free(scope);
}

/* What a layer does not handle it leaves alone, but refer. */
Test(lldomain, each_layer_must_grant_what_it_handles)
{
	struct llruleset *a = layer(LLR_READ_FILE | LLR_REFER), *b = layer(LLR_WRITE_FILE);
	struct llruleset *scope = layer(0);
	const struct {
		struct llruleset *first, *second;
		uint64_t of_first, of_second;
		uint64_t want;
	} table[] = {
		{a, NULL, 0, 0, LLR_ALL & ~(LLR_READ_FILE | LLR_REFER)},
		{a, NULL, LLR_READ_FILE | LLR_REFER, 0, LLR_ALL},
		{b, NULL, 0, 0, LLR_ALL & ~(LLR_WRITE_FILE | LLR_REFER)},
		{b, NULL, LLR_WRITE_FILE, 0, LLR_ALL & ~LLR_REFER},
		{a, b, LLR_READ_FILE | LLR_REFER, LLR_WRITE_FILE, LLR_ALL & ~LLR_REFER},
		{a, b, LLR_READ_FILE, 0, LLR_ALL & ~(LLR_WRITE_FILE | LLR_REFER)},
		{a, b, LLR_WRITE_FILE, LLR_READ_FILE,
		 LLR_ALL & ~(LLR_READ_FILE | LLR_WRITE_FILE | LLR_REFER)},
		{a, scope, LLR_READ_FILE | LLR_REFER, 0, LLR_ALL & ~LLR_REFER},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct lldomain d = of(table[i].first, table[i].second);
		struct lldomain_rights rights = {{table[i].of_first, table[i].of_second}};

		cr_expect(lldomain_is_asked(&d));
		cr_expect_eq(lldomain_granted(&d, &rights), table[i].want, "row %zu", i);
	}
	llruleset_free(a);
	llruleset_free(b);
	llruleset_free(scope);
}

Test(lldomain, rules_join_in_their_own_layer)
{
	struct llruleset *a = layer(LLR_READ_FILE), *b = layer(LLR_READ_FILE | LLR_READ_DIR);
	struct lldomain d = of(a, b);
	struct lldomain_rights rights = {0};
	struct stat st;

	cr_assert_eq(stat("/", &st), 0);
	cr_assert_eq(llruleset_allow_path(a, "/", LLR_READ_FILE), 0);
	cr_assert_eq(llruleset_allow_path(b, "/", LLR_READ_DIR), 0);
	rights.layer[1] = LLR_READ_FILE;
	lldomain_join(&d, st.st_dev, st.st_ino, &rights);
	cr_expect_eq(rights.layer[0], LLR_READ_FILE);
	cr_expect_eq(rights.layer[1], LLR_READ_FILE | LLR_READ_DIR);
	llruleset_free(a);
	llruleset_free(b);
}

Test(lldomain, sixteen_layers_and_no_more)
{
	struct llruleset *rs = layer(LLR_READ_FILE);
	struct lldomain d = lldomain_on(&here);

	for (int i = 0; i < LLDOMAIN_LAYERS_MAX; i++)
		cr_expect_eq(lldomain_push(&d, rs), 0);
	cr_expect_eq(lldomain_push(&d, rs), -E2BIG);
	cr_expect_eq(d.count, LLDOMAIN_LAYERS_MAX);
	llruleset_free(rs);
}

Test(lldomain, of_one_ruleset_is_on_its_own_kernel)
{
	struct llabi old = llabi_of(2);
	struct llruleset *rs = NULL;
	struct lldomain d;

	old.errata = LLABI_ERRATUM_WHITEOUT;
	cr_assert_eq(llruleset_new(&old, 0, &rs), 0);
	d = lldomain_of(rs);
	cr_expect_eq(d.abi, 2);
	cr_expect_eq(d.errata, LLABI_ERRATUM_WHITEOUT);
	cr_expect_eq(d.count, 1);
	llruleset_free(rs);
}
