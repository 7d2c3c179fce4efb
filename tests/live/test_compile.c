/* compile against the running kernel: what a restricted child really gets. */
#include "supervisor/compile.h"
#include "tests/compile_case.h"
#include "tracer/util.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define CASES 200
#define MOVES 400

struct attempt {
	char from[256], to[256];
	int kind; /* 0 rename, 1 link, 2 exchange */
};

/* Shared between the parent, which asks, and the restricted child, which tries. */
struct board {
	uint32_t got[CASE_OBJECTS_MAX];
	bool made[CASE_OBJECTS_MAX][CASE_NAMES];
	struct attempt move[MOVES];
	int moves;
	int moved; /* the first one that worked, -1: none */
	bool restricted;
};

static uint32_t try_object(const struct case_object *o)
{
	char *const none[] = {NULL};
	uint32_t got = 0;
	int fd;

	if (S_ISDIR(o->st.st_mode)) {
		fd = open(o->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0)
			close(fd);
		return fd >= 0 ? ACCESS_LIST : 0;
	}
	fd = open(o->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	got |= fd >= 0 ? ACCESS_READ : 0;
	if (fd >= 0)
		close(fd);
	fd = open(o->path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	got |= fd >= 0 ? ACCESS_WRITE : 0;
	if (fd >= 0)
		close(fd);
	/* empty files: the kernel gets as far as looking for a format */
	execve(o->path, none, none);
	got |= errno == ENOEXEC ? ACCESS_EXEC : 0;
	return got;
}

static bool try_move(const struct attempt *a)
{
	if (a->kind == 1)
		return link(a->from, a->to) == 0;
	return renameat2(AT_FDCWD, a->from, AT_FDCWD, a->to, a->kind ? RENAME_EXCHANGE : 0) == 0;
}

static void try_names(const struct case_tree *t, struct board *b)
{
	char path[320];

	for (size_t i = 0; i < t->objects; i++) {
		for (size_t n = 0; n < CASE_NAMES && S_ISDIR(t->object[i].st.st_mode); n++) {
			snprintf(path, sizeof(path), "%s/%s", t->object[i].path, case_names[n]);
			int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
			b->made[i][n] = fd >= 0;
			if (fd >= 0)
				close(fd);
		}
	}
}

static void child(const struct case_tree *t, const struct llruleset *rs, struct board *b)
{
	alarm(20);
	b->restricted = llruleset_restrict(rs) == 0;
	if (!b->restricted)
		_exit(1);
	for (size_t i = 0; i < t->objects; i++)
		if (!S_ISLNK(t->object[i].st.st_mode))
			b->got[i] = try_object(&t->object[i]);
	for (int i = 0; i < b->moves && b->moved < 0; i++)
		if (try_move(&b->move[i]))
			b->moved = i;
	if (b->moved < 0)
		try_names(t, b);
	_exit(0);
}

static void plan_moves(struct case_tree *t, struct board *b)
{
	for (b->moves = 0; b->moves < MOVES; b->moves++) {
		struct attempt *a = &b->move[b->moves];
		const struct case_object *dir = case_pick(t, S_IFDIR);
		const struct case_object *o = &t->object[case_random(t, (uint32_t)t->objects)];
		snprintf(a->from, sizeof(a->from), "%s", o->path);
		snprintf(a->to, sizeof(a->to), "%.240s/%s", dir->path, case_name(t));
		a->kind = (int)case_random(t, 3);
	}
}

static bool run_child(struct case_tree *t, const struct llruleset *rs, struct board *b)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		child(t, rs, b);
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
	       WEXITSTATUS(status) == 0;
}

static int wrong(const char *what, const char *a, const char *b)
{
	fprintf(stderr, "%s: %s %s\n", what, a, b);
	return 1;
}

static int check(const struct case_tree *t, const struct board *b)
{
	char at[320];

	for (size_t i = 0; i < t->objects; i++)
		for (uint32_t bit = 1; bit < ACCESS_ALL; bit <<= 1)
			if ((b->got[i] & bit) && case_effect(t, &t->object[i], bit) != EFFECT_ALLOW)
				return wrong("got", access_name(bit), t->object[i].path);
	if (b->moved >= 0) {
		const struct attempt *a = &b->move[b->moved];
		if (case_widens(t, a->from, a->to, at) ||
		    (a->kind == 2 && case_widens(t, a->to, a->from, at)))
			return wrong("moved", a->from, at);
	}
	for (size_t i = 0; i < t->objects * CASE_NAMES; i++) {
		snprintf(at, sizeof(at), "%s/%s", t->object[i / CASE_NAMES].path,
			 case_names[i % CASE_NAMES]);
		if (b->made[i / CASE_NAMES][i % CASE_NAMES] &&
		    policy_decide(t->policy, at, ACCESS_CREATE).effect != EFFECT_ALLOW)
			return wrong("made", at, "");
	}
	return 0;
}

struct tally {
	size_t got, moved, made;
};

static void count(struct tally *sum, const struct board *b)
{
	for (size_t i = 0; i < CASE_OBJECTS_MAX; i++) {
		sum->got += b->got[i] != 0;
		for (size_t n = 0; n < CASE_NAMES; n++)
			sum->made += b->made[i][n];
	}
	sum->moved += b->moved >= 0;
}

/* 0: all is well; never asserts, so that it may run in a forked child. */
static int run_cases(uint64_t first, size_t n)
{
	struct board *b =
		mmap(NULL, sizeof(*b), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct tally sum = {0};
	struct llabi abi;
	int bad = 0;

	if (b == MAP_FAILED || llabi_detect(&abi) < 0)
		return 1;
	for (uint64_t seed = first; seed < first + n && !bad; seed++) {
		struct case_tree t;
		struct llruleset *rs;
		memset(b, 0, sizeof(*b));
		b->moved = -1;
		case_make(&t, seed);
		plan_moves(&t, b);
		if (compile_policy(t.policy, &abi, 0, &rs, NULL) < 0)
			return 1;
		bad = !run_child(&t, rs, b) || check(&t, b);
		if (bad)
			case_print(&t, seed);
		count(&sum, b);
		llruleset_free(rs);
		case_free(&t);
	}
	munmap(b, sizeof(*b));
	/* Something must have been possible, or nothing was tested. */
	return bad || sum.got < n || sum.moved < n / 20 || sum.made < n / 20;
}

Test(live_compile, the_kernel_grants_nothing_more, .timeout = 120)
{
	cr_assert_eq(run_cases(100000, CASES), 0);
}

Test(live_compile, nor_to_an_ordinary_user, .timeout = 120)
{
	int status;

	if (geteuid() != 0)
		return;
	pid_t pid = fork();
	if (pid == 0)
		_exit(setgid(65534) < 0 || setuid(65534) < 0 ? 2 : run_cases(200000, CASES));
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %#x", status);
}
