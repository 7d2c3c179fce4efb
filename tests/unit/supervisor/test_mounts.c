#include "supervisor/mounts.h"

#include "supervisor/access.h"
#include "tracer/util.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The same disk at / and, in parts, elsewhere; another one at /other. */
static const char table[] = "20 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
			    "21 20 8:1 /home/u/keys /work/keys rw - ext4 /dev/sda1 rw\n"
			    "22 20 8:1 /home /export/home\\040two rw - ext4 /dev/sda1 ro\n"
			    "23 20 8:1 /home/u/keys/id /work/id rw - ext4 /dev/sda1 rw\n"
			    "24 20 8:2 / /other rw master:3 - ext4 /dev/sdb1 rw\n"
			    "25 24 8:2 /home /other/home rw - ext4 /dev/sdb1 rw\n"
			    "nonsense\n"
			    "26 20 0:5 pipe:[7] /x rw - nsfs nsfs rw\n";

static void add(struct policy *p, enum effect effect, enum rule_kind kind, const char *path)
{
	struct rule rule = {.effect = effect,
			    .kind = kind,
			    .source = RULE_LINE,
			    .access = ACCESS_READ,
			    .path = (char *)path,
			    .origin = (char *)"test"};

	cr_assert_eq(policy_add(p, &rule), 0);
}

/* The paths that were added, each with a blank behind it. */
static void added(enum effect effect, enum rule_kind kind, const char *path, char *ret, size_t n)
{
	struct policy *p;

	cr_assert_eq(policy_new(&p), 0);
	add(p, effect, kind, path);
	cr_assert_eq(mounts_add_rules(p, table), 0);
	ret[0] = '\0';
	for (size_t i = 1; i < policy_len(p); i++) {
		const struct rule *r = policy_at(p, i);
		cr_expect(r->effect == effect && r->kind == kind && r->access == ACCESS_READ);
		snprintf(ret + strlen(ret), n - strlen(ret), "%s ", r->path);
	}
	policy_free(p);
}

Test(mounts, other_names)
{
	static const struct {
		enum effect effect;
		enum rule_kind kind;
		const char *path, *want;
	} rows[] = {
		{EFFECT_FORBID, RULE_TREE, "/home/u/keys",
		 "/work/keys /export/home two/u/keys /work/id "},
		{EFFECT_DENY, RULE_TREE, "/home/u/keys", "/work/keys /export/home two/u/keys "},
		{EFFECT_ASK, RULE_TREE, "/work/keys", "/home/u/keys /export/home two/u/keys "},
		{EFFECT_DENY, RULE_EXACT, "/home/u/keys/id",
		 "/work/keys/id /export/home two/u/keys/id /work/id "},
		{EFFECT_FORBID, RULE_EXACT, "/home", "/export/home two "},
		{EFFECT_FORBID, RULE_TREE, "/home", "/work/keys /export/home two /work/id "},
		{EFFECT_DENY, RULE_TREE, "/export/home two/u", "/home/u "},
		{EFFECT_DENY, RULE_TREE, "/other/home/x", ""},
		{EFFECT_DENY, RULE_TREE, "/other/x", ""},
		{EFFECT_DENY, RULE_TREE, "/etc", ""},
		{EFFECT_ALLOW, RULE_TREE, "/home/u/keys", ""},
		{EFFECT_DENY, RULE_GLOB, "/home/*/keys", ""},
	};
	char got[512];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		added(rows[i].effect, rows[i].kind, rows[i].path, got, sizeof(got));
		cr_expect_str_eq(got, rows[i].want, "row %zu: %s", i, got);
	}
}

Test(mounts, the_whole_of_a_disk_twice)
{
	struct policy *p;

	cr_assert_eq(policy_new(&p), 0);
	add(p, EFFECT_FORBID, RULE_TREE, "/secret");
	add(p, EFFECT_FORBID, RULE_EXACT, "/");
	cr_assert_eq(mounts_add_rules(p, "1 1 8:1 / / rw - x x rw\n2 1 8:1 / /mnt rw - x x rw\n"),
		     0);
	cr_assert_eq(policy_len(p), 4);
	cr_expect_str_eq(policy_at(p, 2)->path, "/mnt/secret");
	cr_expect_str_eq(policy_at(p, 3)->path, "/mnt");
	policy_free(p);
}

Test(mounts, too_many)
{
	struct policy *p;
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	fputs("1 1 8:1 / / rw - x x rw\n", f);
	for (int i = 0; i <= MOUNTS_RULES_MAX; i++)
		fprintf(f, "2 1 8:1 / /m%d rw - x x rw\n", i);
	fclose(f);
	cr_assert_eq(policy_new(&p), 0);
	add(p, EFFECT_FORBID, RULE_TREE, "/secret");
	cr_expect_eq(mounts_add_rules(p, text), -E2BIG);
	policy_free(p);
	free(text);
}
