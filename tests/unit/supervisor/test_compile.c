/* compile: nothing more than the policy allows, and as much of it as the kernel can say. */
#include "landlock/llmodel.h"
#include "landlock/llright.h"
#include "supervisor/compile.h"
#include "supervisor/reach.h"
#include "tests/compile_case.h"
#include "tracer/util.h"

#include <criterion/criterion.h>

#define CONTENT (ACCESS_READ | ACCESS_LIST | ACCESS_EXEC | ACCESS_WRITE | ACCESS_CONNECT | ACCESS_IOCTL)
#define MAKES                                                                                      \
	(LLR_MAKE_REG | LLR_MAKE_DIR | LLR_MAKE_SYM | LLR_MAKE_FIFO | LLR_MAKE_SOCK |              \
	 LLR_MAKE_CHAR | LLR_MAKE_BLOCK)
#define REMOVES (LLR_REMOVE_FILE | LLR_REMOVE_DIR)

static struct llabi kernel_abi(void)
{
	struct llabi abi;

	cr_assert_eq(llabi_detect(&abi), 0);
	return abi;
}

static struct llruleset *compiled(const struct policy *p, struct compile_stats *stats)
{
	struct llabi abi = kernel_abi();
	struct llruleset *rs = NULL;

	cr_assert_eq(compile_policy(p, &abi, 0, &rs, stats), 0);
	return rs;
}

/* The rights that the kernel would grant to an existing path, which may be a symlink's. */
static uint64_t granted(const struct llruleset *rs, const char *path)
{
	char parent[256];
	uint64_t rights = 0;

	snprintf(parent, sizeof(parent), "%s", path);
	*strrchr(parent, '/') = '\0';
	int object AUTOCLOSE = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	int dir AUTOCLOSE = open(parent, O_PATH | O_CLOEXEC);
	cr_assert(dir >= 0);
	cr_assert_eq(llmodel_granted_at(rs, object, dir, &rights), 0);
	return rights & llruleset_handled(rs);
}

/* ---- random ---- */

static bool is_allowed_by_name(const struct case_tree *t, const struct case_object *o, uint32_t bit)
{
	bool allowed = false;

	/* A file is one thing by all its names: open by one, it is open; withheld by one, withheld. */
	for (size_t i = 0; i < t->objects; i++) {
		const struct case_object *a = &t->object[i];
		if (a != o && (S_ISDIR(o->st.st_mode) || a->st.st_ino != o->st.st_ino))
			continue;
		struct decision d = policy_decide(t->policy, a->path, bit);
		if (d.effect != EFFECT_ALLOW && d.rule && reach_is_exception(t->policy, d.rule) &&
		    o->st.st_nlink > 1 && !S_ISDIR(o->st.st_mode))
			return false;
		allowed = allowed || d.effect == EFFECT_ALLOW;
	}
	return allowed;
}

/* Any name in a directory may come into being: the rights must be right for it, too. */
static bool are_names_allowed(const struct case_tree *t, const char *dir, uint32_t bit)
{
	char path[256];

	for (size_t i = 0; i < CASE_NAMES; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, case_names[i]);
		if (policy_decide(t->policy, path, bit).effect != EFFECT_ALLOW)
			return false;
		snprintf(path, sizeof(path), "%s/%s/zz", dir, case_names[i]);
		if (policy_decide(t->policy, path, bit).effect != EFFECT_ALLOW)
			return false;
	}
	return true;
}

static const char *check_object(const struct case_tree *t, const struct case_object *o, uint64_t u)
{
	bool dir = S_ISDIR(o->st.st_mode);

	if (S_ISLNK(o->st.st_mode))
		return NULL;
	for (uint32_t bit = 1; bit < ACCESS_ALL; bit <<= 1) {
		if (!(bit & CONTENT) || !(u & access_rights(bit)))
			continue;
		if ((!dir || bit == ACCESS_LIST) && !is_allowed_by_name(t, o, bit))
			return access_name(bit);
		if (dir && !are_names_allowed(t, o->path, bit))
			return "a name below";
	}
	if ((u & MAKES) && dir && !are_names_allowed(t, o->path, ACCESS_CREATE))
		return "create";
	if ((u & REMOVES) && dir && !are_names_allowed(t, o->path, ACCESS_DELETE))
		return "delete";
	if ((u & LLR_REFER) && dir && !are_names_allowed(t, o->path, ACCESS_MOVE))
		return "move";
	if ((u & LLR_MAKE_REG) && (~u & (LLR_READ_FILE | LLR_WRITE_FILE)))
		return "make_reg alone";
	return NULL;
}

static const char *const kinds[] = {"rename", "link", "exchange"};

/* What the kernel would say to a move of object i to dir/name; true: it goes through. */
static bool goes_through(const struct llruleset *rs, const char *from, const char *dir,
			 const char *to, int kind)
{
	char parent[256];
	int r = -EACCES;

	snprintf(parent, sizeof(parent), "%s", from);
	*strrchr(parent, '/') = '\0';
	int fds[4] = {open(parent, O_PATH | O_CLOEXEC),
		      open(from, O_PATH | O_NOFOLLOW | O_CLOEXEC), open(dir, O_PATH | O_CLOEXEC),
		      open(to, O_PATH | O_NOFOLLOW | O_CLOEXEC)};
	struct llmodel_move m = {fds[0], fds[1], fds[2], fds[3], kind == 2 ? RENAME_EXCHANGE : 0};
	if (kind == 1 ? fds[3] < 0 : kind == 0 || fds[3] >= 0)
		cr_assert_eq((kind == 1 ? llmodel_link : llmodel_rename)(rs, &m, &r), 0);
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		util_close(&fds[i]);
	return r == 0;
}

static const char *check_moves(const struct case_tree *t, const struct llruleset *rs,
			       const uint64_t *u, size_t *moves)
{
	static char text[1024];
	char to[256], at[256];

	for (size_t i = 1; i < t->objects; i++) {
		const char *from = t->object[i].path;
		for (size_t d = 0; d < t->objects * CASE_NAMES * 3; d++) {
			size_t k = d / (CASE_NAMES * 3);
			int kind = (int)(d % 3);
			if (!(u[k] & LLR_STRUCTURE) || case_is_below(from, t->object[k].path) ||
			    (kind == 1 && S_ISDIR(t->object[i].st.st_mode)))
				continue;
			snprintf(to, sizeof(to), "%s/%s", t->object[k].path,
				 case_names[d / 3 % CASE_NAMES]);
			if (case_is_below(to, from) ||
			    !goes_through(rs, from, t->object[k].path, to, kind))
				continue;
			++*moves;
			if (case_widens(t, from, to, at) ||
			    (kind == 2 && case_widens(t, to, from, at))) {
				snprintf(text, sizeof(text), "%s %s -> %s: %s", kinds[kind], from,
					 to, at);
				return text;
			}
		}
	}
	return NULL;
}

Test(compile, grants_nothing_more, .timeout = 240)
{
	size_t moves = 0, ruled = 0, cases = 2500;

	for (uint64_t seed = 1; seed <= cases; seed++) {
		struct case_tree t;
		struct compile_stats stats;
		uint64_t u[CASE_OBJECTS_MAX] = {0};
		const char *wrong = NULL, *path = "";

		case_make(&t, seed);
		struct llruleset *rs = compiled(t.policy, &stats);
		for (size_t i = 0; i < t.objects && !wrong; i++) {
			u[i] = S_ISLNK(t.object[i].st.st_mode) ? 0 : granted(rs, t.object[i].path);
			path = t.object[i].path;
			wrong = check_object(&t, &t.object[i], u[i]);
			if (!S_ISDIR(t.object[i].st.st_mode))
				u[i] = 0;
		}
		if (!wrong)
			wrong = check_moves(&t, rs, u, &moves);
		if (wrong)
			case_print(&t, seed);
		ruled += stats.rules > 0;
		llruleset_free(rs);
		case_free(&t);
		cr_assert_null(wrong, "seed %llu: %s: %s", (unsigned long long)seed, path, wrong);
	}
	/* The cases are worth something: rules were made, and things could be moved. */
	cr_assert_gt(ruled, cases / 2);
	cr_assert_gt(moves, cases);
}
