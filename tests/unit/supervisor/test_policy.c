#include "supervisor/policy.h"

#include "supervisor/glob.h"
#include "tracer/util.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <time.h>

/* "allow r /a exact", words without quoting; for tables. */
static void add_as(struct policy *p, const char *line, enum rule_source source)
{
	char effect[16], access[64], path[256], exact[16] = "";
	struct rule rule = {.source = source, .origin = "test"};
	size_t at;
	cr_assert_geq(sscanf(line, "%15s %63s %255s %15s", effect, access, path, exact), 3, "%s",
		      line);
	for (int e = EFFECT_ALLOW; e <= EFFECT_FORBID; e++)
		if (strcmp(effect_name((enum effect)e), effect) == 0)
			rule.effect = (enum effect)e;
	rule.sensitive = strcmp(effect, "sensitive") == 0;
	if (strcmp(access, "all") == 0)
		rule.access = ACCESS_ALL;
	else
		cr_assert_eq(access_parse(access, strlen(access), &rule.access, &at), 0, "%s",
			     line);
	bool glob = glob_first_wild(path, strlen(path)) < strlen(path);
	rule.kind =
		exact[0] ? (glob ? RULE_GLOB_EXACT : RULE_EXACT) : (glob ? RULE_GLOB : RULE_TREE);
	rule.path = path;
	cr_assert_eq(policy_add(p, &rule), 0, "%s", line);
}

static void add(struct policy *p, const char *line)
{
	add_as(p, line, RULE_USER);
}

#define RULES 8

struct row {
	const char *rules[RULES];
	const char *path;
	uint32_t bit;
	enum effect want;
};

static const struct row rows[] = {
	/* nothing names it */
	{{0}, "/a", ACCESS_READ, EFFECT_ASK},
	{{"allow r /a"}, "/b", ACCESS_READ, EFFECT_ASK},
	{{"allow r /a"}, "/ab", ACCESS_READ, EFFECT_ASK},
	{{"allow r /a"}, "/", ACCESS_READ, EFFECT_ASK},
	/* each access by itself */
	{{"allow r /a"}, "/a/x", ACCESS_READ, EFFECT_ALLOW},
	{{"allow r /a"}, "/a/x", ACCESS_LIST, EFFECT_ALLOW},
	{{"allow r /a"}, "/a/x", ACCESS_WRITE, EFFECT_ASK},
	{{"allow r /a", "deny w /a"}, "/a/x", ACCESS_READ, EFFECT_ALLOW},
	{{"allow r /a", "deny w /a"}, "/a/x", ACCESS_META, EFFECT_DENY},
	{{"allow all /a"}, "/a", ACCESS_IOCTL, EFFECT_ALLOW},
	/* trees and exact */
	{{"allow r /a"}, "/a", ACCESS_READ, EFFECT_ALLOW},
	{{"allow r /"}, "/", ACCESS_READ, EFFECT_ALLOW},
	{{"allow r /"}, "/x/y", ACCESS_READ, EFFECT_ALLOW},
	{{"allow list /a exact"}, "/a", ACCESS_LIST, EFFECT_ALLOW},
	{{"allow list /a exact"}, "/a/b", ACCESS_LIST, EFFECT_ASK},
	{{"allow list / exact"}, "/", ACCESS_LIST, EFFECT_ALLOW},
	{{"allow list / exact"}, "/a", ACCESS_LIST, EFFECT_ASK},
	/* the deepest wins, whatever the effects and the order */
	{{"allow r /a", "deny r /a/b"}, "/a/b/c", ACCESS_READ, EFFECT_DENY},
	{{"deny r /a/b", "allow r /a"}, "/a/b/c", ACCESS_READ, EFFECT_DENY},
	{{"deny r /a", "allow r /a/b"}, "/a/b/c", ACCESS_READ, EFFECT_ALLOW},
	{{"deny r /a", "allow r /a/b", "ask r /a/b/c"}, "/a/b/c/d", ACCESS_READ, EFFECT_ASK},
	{{"deny r /a", "allow r /a/b", "ask r /a/b/c"}, "/a/b/d", ACCESS_READ, EFFECT_ALLOW},
	/* at the same path: exact, tree, glob; deny, ask, allow */
	{{"deny r /a/b", "allow r /a/b exact"}, "/a/b", ACCESS_READ, EFFECT_ALLOW},
	/* A glob closes at any depth; it opens a closed tree only by reaching into it. */
	{{"allow r /a", "deny r /a/**/.env"}, "/a/b/c/.env", ACCESS_READ, EFFECT_DENY},
	{{"deny r /a/s", "allow r /a/**/x.c"}, "/a/s/x.c", ACCESS_READ, EFFECT_DENY},
	{{"ask r /a/s", "allow r /a/**/x.c"}, "/a/s/x.c", ACCESS_READ, EFFECT_ASK},
	{{"deny r /a/s", "allow r /a/s/*.pub"}, "/a/s/k.pub", ACCESS_READ, EFFECT_ALLOW},
	{{"allow r /a/s", "allow r /a/**/x.c"}, "/a/s/x.c", ACCESS_READ, EFFECT_ALLOW},
	{{"deny r /a/b", "allow r /a/b exact"}, "/a/b/c", ACCESS_READ, EFFECT_DENY},
	{{"allow r /a/b", "deny r /a/b"}, "/a/b", ACCESS_READ, EFFECT_DENY},
	{{"allow r /a/b", "ask r /a/b"}, "/a/b", ACCESS_READ, EFFECT_ASK},
	{{"ask r /a/b", "deny r /a/b"}, "/a/b", ACCESS_READ, EFFECT_DENY},
	{{"allow r /a/b exact", "deny r /a/b exact"}, "/a/b", ACCESS_READ, EFFECT_DENY},
	{{"deny r /a/*", "allow r /a/b"}, "/a/b/c", ACCESS_READ, EFFECT_ALLOW},
	{{"deny r /a/*", "allow r /a/b"}, "/a/d/c", ACCESS_READ, EFFECT_DENY},
	{{"deny r /a/* exact", "allow r /a/*"}, "/a/b", ACCESS_READ, EFFECT_DENY},
	{{"allow r /a/* exact", "deny r /a/*"}, "/a/b", ACCESS_READ, EFFECT_ALLOW},
	{{"allow r /a/* exact", "deny r /a/*"}, "/a/b/c", ACCESS_READ, EFFECT_DENY},
	/* forbid before everything */
	{{"forbid all /a", "allow all /a/b exact"}, "/a/b", ACCESS_READ, EFFECT_FORBID},
	{{"forbid w /a", "allow rw /a/b"}, "/a/b", ACCESS_READ, EFFECT_ALLOW},
	{{"forbid r /a exact", "allow r /a"}, "/a/b", ACCESS_READ, EFFECT_ALLOW},
	{{"forbid r /**/k", "allow r /a/k/x exact"}, "/a/k/x", ACCESS_READ, EFFECT_FORBID},
	/* a deny by name inside an allow, and one taken back */
	{{"allow rwx /p", "deny r /p/**/.env"}, "/p/.env", ACCESS_READ, EFFECT_DENY},
	{{"allow rwx /p", "deny r /p/**/.env"}, "/p/a/b/.env", ACCESS_READ, EFFECT_DENY},
	{{"allow rwx /p", "deny r /p/**/.env"}, "/p/a/.env/x", ACCESS_READ, EFFECT_DENY},
	{{"allow rwx /p", "deny r /p/**/.env"}, "/p/a/.envx", ACCESS_READ, EFFECT_ALLOW},
	{{"allow rwx /p", "deny r /p/**/.env"}, "/p/.env", ACCESS_WRITE, EFFECT_ALLOW},
	{{"allow rwx /p", "deny r /p/**/.env"}, "/.env", ACCESS_READ, EFFECT_ASK},
	{{"allow rwx /p", "deny r /p/**/.env", "allow r /p/s/.env"},
	 "/p/s/.env",
	 ACCESS_READ,
	 EFFECT_ALLOW},
	{{"allow rwx /p", "deny r /p/**/.env", "allow r /p/s/.env"},
	 "/p/t/.env",
	 ACCESS_READ,
	 EFFECT_DENY},
	/* the contract's example */
	{{"allow rwx /p", "deny w /p/.git/hooks", "deny r /p/**/.env", "allow r /h/.gitconfig",
	  "allow list /h exact", "ask r /h/.config", "forbid all /h/.ssh"},
	 "/p/.git/hooks/pre-commit",
	 ACCESS_CREATE,
	 EFFECT_DENY},
	{{"allow rwx /p", "deny w /p/.git/hooks"}, "/p/.git/hooks/x", ACCESS_EXEC, EFFECT_ALLOW},
	{{"allow list /h exact", "ask r /h/.config", "forbid all /h/.ssh"},
	 "/h",
	 ACCESS_LIST,
	 EFFECT_ALLOW},
	{{"allow list /h exact", "ask r /h/.config", "forbid all /h/.ssh"},
	 "/h/x",
	 ACCESS_LIST,
	 EFFECT_ASK},
	{{"allow r /h", "ask r /h/.config"}, "/h/.config/a", ACCESS_READ, EFFECT_ASK},
	{{"allow r /h", "forbid all /h/.ssh"}, "/h/.ssh/id", ACCESS_READ, EFFECT_FORBID},
	/* globs */
	{{"allow r /a/*.c"}, "/a/x.c", ACCESS_READ, EFFECT_ALLOW},
	{{"allow r /a/*.c"}, "/a/.c", ACCESS_READ, EFFECT_ALLOW},
	{{"allow r /a/*.c"}, "/a/b/x.c", ACCESS_READ, EFFECT_ASK},
	{{"allow r /a/?"}, "/a/x", ACCESS_READ, EFFECT_ALLOW},
	{{"allow r /a/?"}, "/a/xy", ACCESS_READ, EFFECT_ASK},
	{{"allow r /a/?"}, "/a", ACCESS_READ, EFFECT_ASK},
	{{"allow r /*/b"}, "/.x/b", ACCESS_READ, EFFECT_ALLOW},
	{{"allow r /a/**/b"}, "/a/b", ACCESS_READ, EFFECT_ALLOW},
	{{"allow r /a/**/b"}, "/a/x/y/b/z", ACCESS_READ, EFFECT_ALLOW},
	{{"allow r /a/** exact"}, "/a/x/y", ACCESS_READ, EFFECT_ALLOW},
	{{"allow r /a/** exact"}, "/a", ACCESS_READ, EFFECT_ASK},
	{{"allow r /a/**"}, "/a", ACCESS_READ, EFFECT_ASK},
	{{"allow r /a/**"}, "/a/x/y", ACCESS_READ, EFFECT_ALLOW},
	{{"allow r /a/**", "deny r /a/x"}, "/a/x/y", ACCESS_READ, EFFECT_DENY},
	{{"allow r /a/**", "deny r /a/x/y"}, "/a/x/y/z", ACCESS_READ, EFFECT_DENY},
	{{"allow r /a/x\\*y*"}, "/a/x*yz", ACCESS_READ, EFFECT_ALLOW},
	{{"allow r /a/x\\*y*"}, "/a/xxyz", ACCESS_READ, EFFECT_ASK},
	{{"allow r /a/*a*a*b"}, "/a/aaaaaaaaaaaaab", ACCESS_READ, EFFECT_ALLOW},
	{{"allow r /a/*a*a*b"}, "/a/aaaaaaaaaaaaac", ACCESS_READ, EFFECT_ASK},
	/* no resolved path: no rule can be meant */
	{{"allow all /"}, "a", ACCESS_READ, EFFECT_DENY},
	{{"allow all /"}, "/a//b", ACCESS_READ, EFFECT_DENY},
	{{"allow all /"}, "/a/../b", ACCESS_READ, EFFECT_DENY},
	{{"allow all /"}, "/a/.", ACCESS_READ, EFFECT_DENY},
	{{"allow all /"}, "/a/", ACCESS_READ, EFFECT_DENY},
	{{"allow all /"}, "", ACCESS_READ, EFFECT_DENY},
	{{"allow all /"}, "/..a/.b", ACCESS_READ, EFFECT_ALLOW},
};

Test(policy, decides)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct policy *p;
		cr_assert_eq(policy_new(&p), 0);
		for (size_t k = 0; k < RULES && rows[i].rules[k]; k++)
			add(p, rows[i].rules[k]);
		struct decision d = policy_decide(p, rows[i].path, rows[i].bit);
		cr_assert_eq(d.effect, rows[i].want, "row %zu: %s: %s", i, rows[i].path,
			     effect_name(d.effect));
		policy_free(p);
	}
}

Test(policy, answers_settle_what_was_asked)
{
	static const struct {
		const char *a, *b;
		enum rule_source as, bs;
		enum effect want;
	} settle[] = {
		{"ask w /h", "allow w /h", RULE_PRESET, RULE_PRESET, EFFECT_ASK},
		{"ask w /h", "allow w /h", RULE_PRESET, RULE_USER, EFFECT_ALLOW},
		{"ask w /h", "allow w /h", RULE_PRESET, RULE_ANSWER, EFFECT_ALLOW},
		{"ask w /h", "allow w /h", RULE_USER, RULE_USER, EFFECT_ASK},
		{"ask w /h", "allow w /h", RULE_USER, RULE_PROJECT, EFFECT_ASK},
		{"ask w /h", "allow w /h", RULE_USER, RULE_ANSWER, EFFECT_ALLOW},
		{"ask w /h", "deny w /h", RULE_USER, RULE_ANSWER, EFFECT_DENY},
		{"deny w /h", "allow w /h", RULE_PRESET, RULE_ANSWER, EFFECT_DENY},
		{"ask w /h", "allow w /", RULE_PRESET, RULE_ANSWER, EFFECT_ASK},
	};
	for (size_t i = 0; i < ARRAY_LEN(settle); i++) {
		for (int swap = 0; swap < 2; swap++) {
			struct policy *p;
			cr_assert_eq(policy_new(&p), 0);
			add_as(p, swap ? settle[i].b : settle[i].a,
			       swap ? settle[i].bs : settle[i].as);
			add_as(p, swap ? settle[i].a : settle[i].b,
			       swap ? settle[i].as : settle[i].bs);
			cr_assert_eq(policy_decide(p, "/h/x", ACCESS_WRITE).effect, settle[i].want,
				     "row %zu, swapped %d", i, swap);
			policy_free(p);
		}
	}
}

Test(policy, several_accesses_take_the_hardest)
{
	struct policy *p;
	uint32_t asked = 0;
	cr_assert_eq(policy_new(&p), 0);
	add(p, "allow read /a");
	add(p, "deny delete,move /a");
	struct decision d = policy_decide_all(p, "/a/x", ACCESS_READ, &asked);
	cr_assert_eq(d.effect, EFFECT_ALLOW);
	cr_assert_eq(asked, ACCESS_READ);
	d = policy_decide_all(p, "/a/x", ACCESS_READ | ACCESS_WRITE | ACCESS_LIST, &asked);
	cr_assert_eq(d.effect, EFFECT_ASK);
	cr_assert_null(d.rule);
	cr_assert_eq(asked, ACCESS_WRITE | ACCESS_LIST);
	d = policy_decide_all(p, "/a/x", ACCESS_ALL, &asked);
	cr_assert_eq(d.effect, EFFECT_DENY);
	cr_assert_eq(asked, ACCESS_DELETE | ACCESS_MOVE);
	cr_assert_eq(d.rule, policy_at(p, 1));
	d = policy_decide_all(p, "/a/x", 0, &asked);
	cr_assert_eq(d.effect, EFFECT_ALLOW);
	cr_assert_eq(asked, 0);
	policy_free(p);
}

Test(policy, uniform_and_exceptions)
{
	static const struct {
		const char *rules[RULES];
		const char *dir;
		bool uniform, exception;
	} cases[] = {
		{{"allow r /a"}, "/a", true, false},
		{{"allow r /a"}, "/a/b", true, false},
		{{"allow r /a"}, "/b", false, false},
		{{"allow r /a exact"}, "/a", false, false},
		{{"allow r /a", "deny r /a exact"}, "/a", false, false},
		{{"allow r /a", "deny r /a/b"}, "/a", false, true},
		{{"allow r /a", "deny r /a/b"}, "/a/b", false, false},
		{{"allow r /a", "deny r /a/b"}, "/a/bc", true, false},
		{{"allow r /a", "ask r /a/b/c exact"}, "/a/b", false, true},
		{{"allow r /a", "deny w /a/b"}, "/a", true, false},
		{{"allow r /a", "deny r /a/**/.env"}, "/a", false, true},
		{{"allow r /a", "deny r /a/**/.env"}, "/a/x/y", false, true},
		{{"allow r /a", "deny r /a/*/k"}, "/a/x", false, true},
		{{"allow r /a", "deny r /a/*/k"}, "/a/x/y", true, false},
		{{"allow r /a", "deny r /a/b*/k"}, "/a/c", true, false},
		{{"allow r /a", "deny r /*"}, "/a", true, false},
		{{"allow r /", "deny r /a"}, "/", false, true},
		{{"allow r /", "sensitive r /a"}, "/", true, false},
		{{"allow r /a", "forbid all /"}, "/a", false, false},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct policy *p;
		cr_assert_eq(policy_new(&p), 0);
		for (size_t k = 0; k < RULES && cases[i].rules[k]; k++)
			add(p, cases[i].rules[k]);
		cr_assert_eq(policy_uniform(p, cases[i].dir, ACCESS_READ), cases[i].uniform,
			     "row %zu", i);
		cr_assert_eq(policy_exception_below(p, cases[i].dir, ACCESS_READ),
			     cases[i].exception, "row %zu", i);
		policy_free(p);
	}
}

Test(policy, sensitive_marks_decide_nothing)
{
	struct policy *p;
	cr_assert_eq(policy_new(&p), 0);
	add(p, "sensitive all /h/.ssh");
	add(p, "sensitive w /h/.bashrc");
	add(p, "sensitive all /**/.env");
	add(p, "allow r /h");
	cr_assert_eq(policy_decide(p, "/h/.ssh/id", ACCESS_READ).effect, EFFECT_ALLOW);
	cr_assert(policy_sensitive(p, "/h/.ssh/id"));
	cr_assert(policy_sensitive(p, "/x/y/.env"));
	cr_assert_not(policy_sensitive(p, "/h/x"));
	cr_assert(policy_sensitive(p, "/h/.bashrc"));
	cr_assert(policy_sensitive_for(p, "/h/.bashrc", ACCESS_WRITE | ACCESS_READ));
	cr_assert_not(policy_sensitive_for(p, "/h/.bashrc", ACCESS_READ));
	cr_assert(policy_sensitive(p, "not/resolved"));
	policy_free(p);
}

Test(policy, what_is_no_rule)
{
	struct policy *p;
	cr_assert_eq(policy_new(&p), 0);
	static const char *const bad[] = {"a", "", "/a/../b", "/a/./b", "/.."};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct rule r = {.access = ACCESS_ALL, .path = (char *)bad[i], .origin = "test"};
		cr_assert_eq(policy_add(p, &r), -EINVAL, "%s", bad[i]);
		r.kind = RULE_GLOB;
		if (bad[i][0] != '/')
			cr_assert_eq(policy_add(p, &r), -EINVAL, "%s", bad[i]);
	}
	struct rule nowhere = {.access = ACCESS_ALL, .path = "/a"};
	cr_assert_eq(policy_add(p, &nowhere), -EINVAL);
	char deep[300] = "";
	for (int i = 0; i <= GLOB_PARTS_MAX; i++)
		strcat(deep, "/*");
	struct rule r = {.access = ACCESS_ALL, .kind = RULE_GLOB, .path = deep, .origin = "test"};
	cr_assert_eq(policy_add(p, &r), -EINVAL);
	cr_assert_eq(policy_len(p), 0);
	policy_free(p);
}

Test(policy, normalises_copies_and_removes)
{
	struct policy *p, *copy;
	cr_assert_eq(policy_new(&p), 0);
	char path[] = "//a///b//";
	struct rule r = {.access = ACCESS_R, .path = path, .origin = "test", .source = RULE_ANSWER};
	cr_assert_eq(policy_add(p, &r), 0);
	memset(path, 'x', sizeof(path) - 1);
	const struct rule *first = policy_at(p, 0);
	cr_assert_str_eq(first->path, "/a/b");
	for (int i = 0; i < 500; i++) {
		char other[32];
		snprintf(other, sizeof(other), "deny r /a/b/%d", i);
		add(p, other);
	}
	cr_assert_eq(policy_at(p, 0), first, "a rule keeps its address");
	cr_assert_eq(policy_copy(p, &copy), 0);
	struct rule same = {.access = ACCESS_R, .path = "/a/b"};
	cr_assert_eq(policy_remove(p, &same), 1);
	cr_assert_eq(policy_decide(p, "/a/b/x", ACCESS_READ).effect, EFFECT_ASK);
	cr_assert_eq(policy_decide(copy, "/a/b/x", ACCESS_READ).effect, EFFECT_ALLOW);
	cr_assert_eq(policy_decide(p, "/a/b/499", ACCESS_READ).effect, EFFECT_DENY);
	same.path = "/a/b/7";
	same.effect = EFFECT_DENY;
	cr_assert_eq(policy_remove(p, &same), 0, "only answers are taken back");
	policy_truncate(p, 10);
	cr_assert_eq(policy_len(p), 10);
	cr_assert_eq(policy_decide(p, "/a/b/499", ACCESS_READ).effect, EFFECT_ASK);
	cr_assert_eq(policy_decide(p, "/a/b/3", ACCESS_READ).effect, EFFECT_DENY);
	policy_free(p);
	policy_free(copy);
	policy_free(NULL);
}

/* ---- against a naive reading of the rules ---- */

static uint32_t seed = 12345;

static unsigned roll(unsigned n)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 8) % n;
}

static size_t components(const char *path)
{
	size_t n = 0;
	for (const char *c = path; path[1] && *c; c++)
		n += *c == '/';
	return n;
}

/* One component against one pattern component, by recursion. */
static bool naive_word(const char *p, const char *s)
{
	if (*p == '*')
		return naive_word(p + 1, s) || (*s && naive_word(p, s + 1));
	if (!*p || !*s)
		return *p == *s;
	return (*p == '?' || *p == *s) && naive_word(p + 1, s + 1);
}

/* Components as arrays: does pattern[0..pn) match path[0..n) whole? */
static bool naive_glob(char (*p)[16], size_t pn, char (*s)[16], size_t n, bool last_needs_one)
{
	if (pn == 0)
		return n == 0;
	if (strcmp(p[0], "**") == 0) {
		if (pn == 1)
			return !last_needs_one || n >= 1;
		for (size_t skip = 0; skip <= n; skip++)
			if (naive_glob(p + 1, pn - 1, s + skip, n - skip, last_needs_one))
				return true;
		return false;
	}
	return n > 0 && naive_word(p[0], s[0]) &&
	       naive_glob(p + 1, pn - 1, s + 1, n - 1, last_needs_one);
}

static size_t split(const char *path, char (*out)[16])
{
	size_t n = 0;
	for (const char *at = path; *at == '/' && at[1];) {
		size_t len = strcspn(++at, "/");
		memcpy(out[n], at, len);
		out[n++][len] = '\0';
		at += len;
	}
	return n;
}

/* The components that the rule covers of the path; -1 none. */
static int naive_cover(const struct rule *r, const char *path)
{
	char p[16][16], s[16][16];
	size_t pn = split(r->path, p), n = split(path, s);
	if (r->kind == RULE_EXACT)
		return strcmp(r->path, path) == 0 ? (int)n : -1;
	if (r->kind == RULE_TREE) {
		for (size_t i = 0; i < pn; i++)
			if (i >= n || strcmp(p[i], s[i]) != 0)
				return -1;
		return (int)pn;
	}
	if (r->kind == RULE_GLOB_EXACT)
		return naive_glob(p, pn, s, n, true) ? (int)n : -1;
	/* A tree glob with ** at its end counts as one more component. */
	while (pn > 1 && strcmp(p[pn - 1], "**") == 0 && strcmp(p[pn - 2], "**") == 0)
		pn--;
	if (strcmp(p[pn - 1], "**") == 0)
		strcpy(p[pn - 1], "*");
	for (size_t k = n + 1; k-- > 0;)
		if (naive_glob(p, pn, s, k, true))
			return (int)k;
	return -1;
}

static int naive_score(const struct rule *r, int depth)
{
	static const int kind[] = {
		[RULE_GLOB] = 0, [RULE_GLOB_EXACT] = 1, [RULE_TREE] = 2, [RULE_EXACT] = 3};
	return depth * 100 + kind[r->kind] * 10 + (int)r->effect;
}

static bool is_glob(const struct rule *r)
{
	return r->kind == RULE_GLOB || r->kind == RULE_GLOB_EXACT;
}

/* Components before the first that has a wildcard. */
static int naive_fixed(const struct rule *r)
{
	char p[16][16];
	size_t n = split(r->path, p), i = 0;
	while (i < n && !strpbrk(p[i], "*?"))
		i++;
	return (int)i;
}

/* The deepest literal rule that closes; -1 where the deepest literal one opens, or none is. */
static int naive_closed_at(const struct policy *p, const char *path, uint32_t bit)
{
	int best = -1, at = -1;
	for (size_t i = 0; i < policy_len(p); i++) {
		const struct rule *r = policy_at(p, i);
		int depth = r->access & bit && !is_glob(r) ? naive_cover(r, path) : -1;
		if (depth >= 0 && naive_score(r, depth) > best) {
			best = naive_score(r, depth);
			at = r->effect == EFFECT_ALLOW ? -1 : depth;
		}
	}
	return at;
}

static enum effect naive_decide(const struct policy *p, const char *path, uint32_t bit)
{
	int best = -1, closed_at = naive_closed_at(p, path, bit);
	enum effect effect = EFFECT_ASK;
	for (size_t i = 0; i < policy_len(p); i++) {
		const struct rule *r = policy_at(p, i);
		int depth = r->access & bit ? naive_cover(r, path) : -1;
		if (depth < 0)
			continue;
		if (r->effect == EFFECT_FORBID)
			return EFFECT_FORBID;
		if (is_glob(r) && r->effect == EFFECT_ALLOW && naive_fixed(r) < closed_at)
			continue;
		if (naive_score(r, depth) > best) {
			best = naive_score(r, depth);
			effect = r->effect;
		}
	}
	return effect;
}

static void random_path(char *out, unsigned max, bool glob)
{
	static const char *const words[] = {"a", "b", "ab", ".a", "ba"};
	static const char *const wild[] = {"*", "?", "**", "a*", "*a", "?a"};
	char *at = out;
	unsigned n = 1 + roll(max);
	bool any = false;
	for (unsigned i = 0; i < n; i++) {
		bool w = glob && (roll(2) || (i + 1 == n && !any));
		any |= w;
		at += sprintf(at, "/%s",
			      w ? wild[roll(ARRAY_LEN(wild))] : words[roll(ARRAY_LEN(words))]);
	}
}

static void random_rule(struct policy *p)
{
	static const uint32_t masks[] = {ACCESS_R, ACCESS_W, ACCESS_ALL, ACCESS_READ};
	char path[128] = "/";
	struct rule r = {.path = path, .origin = "test", .source = RULE_USER};
	bool glob = roll(3) == 0;
	r.effect = roll(12) ? (enum effect)roll(3) : EFFECT_FORBID;
	r.kind =
		glob ? (roll(3) ? RULE_GLOB : RULE_GLOB_EXACT) : (roll(3) ? RULE_TREE : RULE_EXACT);
	r.access = masks[roll(ARRAY_LEN(masks))];
	if (glob || roll(20))
		random_path(path, 4, glob);
	cr_assert_eq(policy_add(p, &r), 0, "%s", path);
}

Test(policy, agrees_with_a_naive_reading)
{
	size_t compared = 0, seen[4] = {0};
	for (int round = 0; round < 2000; round++) {
		struct policy *p;
		cr_assert_eq(policy_new(&p), 0);
		for (unsigned n = roll(25); n > 0; n--)
			random_rule(p);
		for (int k = 0; k < 30; k++) {
			char path[128];
			random_path(path, 6, false);
			enum effect got = policy_decide(p, path, ACCESS_READ).effect;
			enum effect want = naive_decide(p, path, ACCESS_READ);
			cr_assert_eq(got, want, "round %d, %s: %s, not %s", round, path,
				     effect_name(got), effect_name(want));
			seen[got]++;
			compared++;
			/* Whatever is uniform holds for every name below. */
			char dir[128];
			snprintf(dir, sizeof(dir), "%s", path);
			size_t depth = components(dir);
			for (; depth > 1; depth--) {
				*strrchr(dir, '/') = '\0';
				if (policy_uniform(p, dir, ACCESS_READ))
					cr_assert_eq(got, EFFECT_ALLOW, "%s under %s", path, dir);
			}
		}
		policy_free(p);
	}
	for (int e = 0; e < 4; e++)
		cr_assert_gt(seen[e], compared / 100, "effect %d hardly occurs", e);
}

Test(policy, is_fast_enough)
{
	struct policy *p;
	char line[128];
	cr_assert_eq(policy_new(&p), 0);
	for (int i = 0; i < 270; i++) {
		snprintf(line, sizeof(line), "allow r /home/user/some/dir%d/in/it", i);
		add(p, line);
	}
	for (int i = 0; i < 30; i++) {
		snprintf(line, sizeof(line), "deny r /home/user/**/secret%d", i);
		add(p, line);
	}
	struct timespec a, b;
	clock_gettime(CLOCK_MONOTONIC, &a);
	const int n = 20000;
	for (int i = 0; i < n; i++)
		policy_decide(p, "/home/user/some/dir7/in/it/src/deep/down/file.c", ACCESS_READ);
	clock_gettime(CLOCK_MONOTONIC, &b);
	double us =
		((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) / n / 1e3;
	cr_log_info("%.2f us a decision", us);
	cr_assert_lt(us, 100, "%.2f us (generous: sanitizers and busy machines)", us);
	policy_free(p);
}
