/*
 * landlock_cases FILE: a written table of cases, each asked of the kernel and of the model.
 *
 * A case has a tree of its own on a fresh tmpfs (see `standard`), in a mount namespace of its own.
 * Its lines are set-up by an unrestricted process ("do …"), a further layer ("layer HANDLED PATH
 * RIGHTS …"), or a call under all layers so far and what comes of it. cases.txt explains the words.
 * Exit: 0 all as written, 1 not, 2 usage, 3 it can't be done here, 77 no Landlock or not root.
 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "oracle.h"

#define WORDS_MAX 40
#define HELD_MAX  8
#define COUNT(a)  (sizeof(a) / sizeof((a)[0]))

enum { FINE = 0, WRONG = 1, USAGE = 2, FAILED = 3, SKIPPED = 4, NOT_HERE = 77 };

struct run {
	struct oracle_world w;
	const char *name;
	int line;
	int wrong;
	struct {
		char name[16];
		int fd;
	} held[HELD_MAX];
	int held_count;
};

struct word {
	const char *word;
	uint64_t value;
};

static const struct word rights[] = {
	{"read", LLR_READ_FILE},
	{"write", LLR_WRITE_FILE},
	{"list", LLR_READ_DIR},
	{"exec", LLR_EXECUTE},
	{"trunc", LLR_TRUNCATE},
	{"ioctl", LLR_IOCTL_DEV},
	{"refer", LLR_REFER},
	{"reg", LLR_MAKE_REG},
	{"dir", LLR_MAKE_DIR},
	{"fifo", LLR_MAKE_FIFO},
	{"sock", LLR_MAKE_SOCK},
	{"sym", LLR_MAKE_SYM},
	{"char", LLR_MAKE_CHAR},
	{"block", LLR_MAKE_BLOCK},
	{"rmfile", LLR_REMOVE_FILE},
	{"rmdir", LLR_REMOVE_DIR},
	{"none", 0},
	{"all", LLR_ALL},
	{"ro", LLR_READ_FILE | LLR_READ_DIR},
	{"rw", LLR_READ_FILE | LLR_READ_DIR | LLR_WRITE_FILE},
};

static const struct word kinds[] = {
	{"reg", S_IFREG},   {"plain", 0},	{"dir", S_IFDIR},  {"fifo", S_IFIFO},
	{"sock", S_IFSOCK}, {"block", S_IFBLK}, {"char", S_IFCHR}, {"whiteout", S_IFCHR},
};

static const struct word outcomes[] = {
	{"ok", 0},	    {"EACCES", EACCES},	  {"EXDEV", EXDEV},
	{"ENOENT", ENOENT}, {"ENOTDIR", ENOTDIR}, {"EISDIR", EISDIR},
	{"EBUSY", EBUSY},   {"EPERM", EPERM},	  {"ENOTEMPTY", ENOTEMPTY},
	{"EINVAL", EINVAL}, {"ENOTTY", ENOTTY},
};

/* A call's word; the flags are of open or renameat2, or an ioctl's command. */
static const struct {
	const char *word;
	enum oracle_op op;
	int flags;
	unsigned long ioctl;
} calls[] = {
	{"r", ORACLE_OPEN, O_RDONLY, 0},
	{"w", ORACLE_OPEN, O_WRONLY, 0},
	{"rw", ORACLE_OPEN, O_RDWR, 0},
	{"ls", ORACLE_OPEN, O_RDONLY | O_DIRECTORY, 0},
	{"path", ORACLE_OPEN, O_PATH, 0},
	{"rt", ORACLE_OPEN, O_RDONLY | O_TRUNC, 0},
	{"wt", ORACLE_OPEN, O_WRONLY | O_TRUNC, 0},
	{"over", ORACLE_OPEN, O_WRONLY | O_TRUNC | O_CREAT, 0},
	{"creat", ORACLE_CREATE, O_WRONLY | O_TRUNC | O_CREAT, 0},
	{"tmp", ORACLE_TMPFILE, O_RDWR | O_TMPFILE, 0},
	{"trunc", ORACLE_TRUNCATE, 0, 0},
	{"ftrunc", ORACLE_FTRUNCATE, 0, 0},
	{"exec", ORACLE_EXEC, 0, 0},
	{"fionread", ORACLE_IOCTL, O_RDONLY | O_NONBLOCK, FIONREAD},
	{"fionbio", ORACLE_IOCTL, O_RDONLY | O_NONBLOCK, FIONBIO},
	{"mk", ORACLE_MAKE, 0, 0},
	{"sym", ORACLE_SYMLINK, 0, 0},
	{"bind", ORACLE_BIND, 0, 0},
	{"rm", ORACLE_REMOVE, 0, 0},
	{"mv", ORACLE_RENAME, 0, 0},
	{"swap", ORACLE_RENAME, RENAME_EXCHANGE, 0},
	{"white", ORACLE_RENAME, RENAME_WHITEOUT, 0},
	{"ln", ORACLE_LINK, 0, 0},
};

static const char *const standard[] = {
	"do mk dir a",	     "do mk dir a/b",	  "do mk dir a/b/c",   "do mk reg a/1",
	"do mk reg a/2",     "do mk reg a/b/1",	  "do mk reg a/b/2",   "do mk reg a/b/c/1",
	"do mk reg a/b/c/2", "do mk dir d",	  "do mk dir d/e",     "do mk dir d/e/f",
	"do mk reg d/1",     "do mk reg d/e/1",	  "do mk reg d/e/f/1", "do mk reg d/e/f/2",
	"do mk dir g",	     "do mk reg g/1",	  "do mk dir g/h",     "do mount tmpfs g/h",
	"do mk dir g/h/i",   "do mk reg g/h/i/1", "do mk dir g/h/j",   "do mk reg g/h/j/1",
};

__attribute__((format(printf, 2, 3), noreturn)) static void broken(const struct run *run,
								   const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "case %s, line %d: ", run->name, run->line);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	_exit(FAILED);
}

static uint64_t look_up(const struct run *run, const struct word *table, size_t n, const char *word)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(table[i].word, word) == 0)
			return table[i].value;
	broken(run, "what is %s?", word);
}

/* "read+list"; changes the text. */
static uint64_t parse_rights(const struct run *run, char *text)
{
	uint64_t mask = 0;
	char *rest = NULL;

	for (char *word = strtok_r(text, "+", &rest); word; word = strtok_r(NULL, "+", &rest))
		mask |= look_up(run, rights, COUNT(rights), word);
	return mask;
}

/* A path is absolute, or of the case's own tree, or begins with a held directory: @name/… */
static void place(const struct run *run, const char *path, char to[ORACLE_PATH_BYTES])
{
	size_t len = strcspn(path, "/");

	if (path[0] == '/') {
		oracle_say(to, ORACLE_PATH_BYTES, "%s", path);
		return;
	}
	if (path[0] != '@') {
		oracle_say(to, ORACLE_PATH_BYTES, "%s/%s", run->w.root, path);
		return;
	}
	for (int i = 0; i < run->held_count; i++) {
		if (strlen(run->held[i].name) == len - 1 &&
		    strncmp(run->held[i].name, path + 1, len - 1) == 0) {
			oracle_say(to, ORACLE_PATH_BYTES, "/proc/self/fd/%d%s", run->held[i].fd,
				   path + len);
			return;
		}
	}
	broken(run, "nothing is held as %s", path);
}

/* ---- set-up ---- */

static void hold(struct run *run, const char *name, int fd)
{
	if (fd < 0 || run->held_count == HELD_MAX)
		broken(run, "%s can't be held", name);
	oracle_say(run->held[run->held_count].name, sizeof(run->held[0].name), "%s", name);
	run->held[run->held_count++].fd = fd;
}

static void hold_pipe(struct run *run, const char *name)
{
	int ends[2];

	if (pipe(ends) < 0)
		broken(run, "no pipe");
	/* Both ends stay open, so that neither can block. */
	hold(run, name, ends[0]);
}

static int do_mount(const struct run *run, const char *type, const char *at)
{
	char options[4 * ORACLE_PATH_BYTES];
	const char *root = run->w.root;

	oracle_say(options, sizeof(options),
		   "lowerdir=%s/lower,upperdir=%s/up/upper,workdir=%s/up/work", root, root, root);
	return mount(type, at, type, 0, strcmp(type, "overlay") == 0 ? options : NULL);
}

static int do_make(const struct run *run, const char *kind, const char *path)
{
	mode_t mode = (mode_t)look_up(run, kinds, COUNT(kinds), kind);
	dev_t dev = strcmp(kind, "whiteout") == 0 ? 0 : makedev(1, 3);

	return S_ISDIR(mode) ? mkdir(path, 0755) : mknod(path, mode | 0755, dev);
}

/* The last word is a path (or a pipe's name); what stands between depends on the verb. */
static void set_up(struct run *run, char **word, int n)
{
	char last[ORACLE_PATH_BYTES], from[ORACLE_PATH_BYTES];
	const char *verb = word[1];
	int r = 0;

	place(run, word[n - 1], last);
	if (strcmp(verb, "mk") == 0) {
		r = do_make(run, word[2], last);
	} else if (strcmp(verb, "rm") == 0) {
		r = remove(last);
	} else if (strcmp(verb, "mv") == 0) {
		place(run, word[2], from);
		r = rename(from, last);
	} else if (strcmp(verb, "bind") == 0) {
		place(run, word[2], from);
		r = mount(from, last, NULL, MS_BIND | MS_REC, NULL);
	} else if (strcmp(verb, "mount") == 0) {
		if (do_mount(run, word[2], last) < 0)
			_exit(SKIPPED);
	} else if (strcmp(verb, "umount") == 0) {
		r = umount(last);
	} else if (strcmp(verb, "hold") == 0) {
		hold(run, word[2], open(last, O_PATH));
	} else if (strcmp(verb, "pipe") == 0) {
		hold_pipe(run, word[2]);
	} else {
		broken(run, "what is %s?", verb);
	}
	if (r < 0)
		broken(run, "%s: %s", verb, strerror(errno));
}

static void add_layer(struct run *run, char **word)
{
	struct llabi abi = run->w.kernel;
	struct llruleset *rs = NULL;
	char path[ORACLE_PATH_BYTES];
	uint64_t scopes = 0;

	/* What this kernel does not know can't be handled; the case then says too little here. */
	if (strcmp(word[1], "scope") == 0) {
		abi.fs = 0;
		scopes = LLR_SCOPE_SIGNAL;
	} else {
		abi.fs = parse_rights(run, word[1]);
		if (abi.fs == LLR_ALL)
			abi.fs = run->w.kernel.fs;
	}
	if ((abi.fs & ~run->w.kernel.fs) || (scopes & ~run->w.kernel.scoped))
		_exit(SKIPPED);
	if (llruleset_new(&abi, scopes, &rs) < 0 || lldomain_push(&run->w.domain, rs) < 0)
		broken(run, "no layer");
	for (word += 2; word[0]; word += 2) {
		if (!word[1])
			broken(run, "no rights for %s", word[0]);
		place(run, word[0], path);
		if (llruleset_allow_path(rs, path, parse_rights(run, word[1])) < 0)
			broken(run, "no rule on %s", path);
	}
}

/* ---- a call ---- */

static int ask_kernel(const struct run *run, const struct oracle_request *q)
{
	int ends[2], answer = 1;
	pid_t pid;

	if (pipe(ends) < 0)
		broken(run, "no pipe");
	pid = fork();
	if (pid == 0) {
		for (unsigned int i = 0; i < run->w.domain.count; i++)
			if (llruleset_restrict(run->w.domain.layers[i]) < 0)
				_exit(FAILED);
		answer = oracle_try(q);
		_exit(write(ends[1], &answer, sizeof(answer)) == sizeof(answer) ? 0 : FAILED);
	}
	close(ends[1]);
	if (pid < 0 || read(ends[0], &answer, sizeof(answer)) != sizeof(answer))
		broken(run, "the kernel was not asked");
	close(ends[0]);
	waitpid(pid, NULL, 0);
	return answer;
}

/* What is known of the model's answer. */
enum model { SURE, MAY_NOT_KNOW, NOT_ASKED };

/* "EACCES", "whiteout?EACCES:ok" (by a fixed erratum), "EACCES~" (the model may not know),
 * "EACCES!" (the model is not asked). */
static int parse_outcome(const struct run *run, char *text, enum model *ret_model)
{
	char *fixed = strchr(text, '?'), *otherwise = strchr(text, ':');
	char *mark = text + strlen(text) - 1;

	*ret_model = *mark == '~' ? MAY_NOT_KNOW : *mark == '!' ? NOT_ASKED : SURE;
	if (*ret_model != SURE)
		*mark = '\0';
	if (fixed && otherwise) {
		*otherwise++ = '\0';
		text = run->w.kernel.errata & LLABI_ERRATUM_WHITEOUT ? fixed + 1 : otherwise;
	}
	return -(int)look_up(run, outcomes, COUNT(outcomes), text);
}

/* 0, -EACCES or -EXDEV in *ret, between two mounts as well; or what the model failed with. */
static int ask_model(const struct run *run, const struct oracle_request *q, int *ret)
{
	if (oracle_vfs_matter(q) != ORACLE_VFS_XDEV)
		return oracle_predict(&run->w, q, ret);
	*ret = -EXDEV;
	return 0;
}

static void check(struct run *run, const struct oracle_request *q, char *outcome)
{
	enum model known;
	int want = parse_outcome(run, outcome, &known), model = 1;
	int landlock = want == -EACCES || want == -EXDEV ? want : 0;
	int r = ask_model(run, q, &model), kernel = ask_kernel(run, q);
	/* Nothing can be said of what is not there. */
	bool right = known == NOT_ASKED || want == -ENOENT;

	right |= r < 0 ? known == MAY_NOT_KNOW : model == landlock;
	if (kernel == want && right)
		return;
	run->wrong++;
	fprintf(stderr, "case %s, line %d: want %d, kernel %d, model %d (%s)\n", run->name,
		run->line, want, kernel, model, r < 0 ? strerror(-r) : "sure");
}

static void call(struct run *run, char **word)
{
	struct oracle_request q = {0};
	size_t i = 0;
	int n = 1;

	while (i < COUNT(calls) && strcmp(calls[i].word, word[0]) != 0)
		i++;
	if (i == COUNT(calls))
		broken(run, "what is %s?", word[0]);
	q.op = calls[i].op;
	q.flags = calls[i].flags | (q.op < ORACLE_MAKE ? O_CLOEXEC | O_NOCTTY : 0);
	q.ioctl = calls[i].ioctl;
	if (!word[1] || !word[2])
		broken(run, "no outcome");
	if (q.op == ORACLE_MAKE) {
		q.mode = (mode_t)look_up(run, kinds, COUNT(kinds), word[1]);
		q.dev = strcmp(word[1], "whiteout") == 0 ? 0 : makedev(1, 3);
		n++;
	}
	place(run, word[n++], q.path);
	if (q.op == ORACLE_RENAME || q.op == ORACLE_LINK) {
		if (!word[n])
			broken(run, "where to?");
		place(run, word[n++], q.path2);
	}
	if (q.op == ORACLE_IOCTL) {
		struct stat st;

		q.mode = stat(q.path, &st) < 0 ? 0 : st.st_mode;
	}
	if (!word[n])
		broken(run, "no outcome");
	check(run, &q, word[n]);
}

static void line(struct run *run, char *text)
{
	char *word[WORDS_MAX + 1] = {0}, *rest = NULL;
	int n = 0;

	text[strcspn(text, "#\n")] = '\0';
	for (char *w = strtok_r(text, " \t", &rest); w && n < WORDS_MAX;
	     w = strtok_r(NULL, " \t", &rest))
		word[n++] = w;
	if (n == 0)
		return;
	if (strcmp(word[0], "do") == 0 && n > 2)
		set_up(run, word, n);
	else if (strcmp(word[0], "layer") == 0 && n > 1)
		add_layer(run, word);
	else if (strcmp(word[0], "needs-disconnected") != 0)
		call(run, word);
	else if (!(run->w.kernel.errata & LLABI_ERRATUM_DISCONNECTED))
		_exit(SKIPPED);
}

/* ---- the file ---- */

struct table {
	char **lines;
	int count;
};

static int run_case(const struct table *t, int at, int end, const char *root)
{
	struct run run = {.name = t->lines[at] + strlen("case "), .line = at + 1};
	char text[1024];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	umask(0);
	strcpy(run.w.root, root);
	if (llabi_detect(&run.w.kernel) < 0 || unshare(CLONE_NEWNS) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("warder-test", root, "tmpfs", 0, "size=4m,mode=755"))
		return FAILED;
	run.w.domain = lldomain_on(&run.w.kernel);
	for (size_t i = 0; i < COUNT(standard); i++) {
		oracle_say(text, sizeof(text), "%s", standard[i]);
		line(&run, text);
	}
	for (int i = at + 1; i < end; i++) {
		run.line = i + 1;
		line(&run, t->lines[i]);
	}
	return run.wrong ? WRONG : FINE;
}

/* The mounts end with the child. */
static int fork_case(const struct table *t, int at, int end)
{
	char root[] = "/tmp/warder-llcases-XXXXXX";
	int status = 0;
	pid_t pid;

	t->lines[at][strcspn(t->lines[at], "\n")] = '\0';
	if (!mkdtemp(root))
		return FAILED;
	pid = fork();
	if (pid == 0)
		_exit(run_case(t, at, end, root));
	if (pid < 0 || waitpid(pid, &status, 0) != pid || rmdir(root) < 0 || !WIFEXITED(status))
		return FAILED;
	return WEXITSTATUS(status);
}

static int read_table(const char *path, struct table *ret)
{
	FILE *f = fopen(path, "re");
	char *text = NULL;
	size_t size = 0;

	if (!f)
		return -errno;
	*ret = (struct table){0};
	while (getline(&text, &size, f) > 0) {
		ret->lines = reallocarray(ret->lines, (size_t)ret->count + 1, sizeof(*ret->lines));
		if (!ret->lines)
			return -ENOMEM;
		ret->lines[ret->count++] = text;
		text = NULL;
	}
	free(text);
	fclose(f);
	return 0;
}

static bool is_case(const char *text)
{
	return strncmp(text, "case ", strlen("case ")) == 0;
}

int main(int argc, char **argv)
{
	int count[SKIPPED + 1] = {0}, r;
	struct table t;

	if (argc != 2)
		return USAGE;
	if (llabi_probe() < 2 || geteuid() != 0)
		return NOT_HERE;
	r = read_table(argv[1], &t);
	if (r < 0) {
		fprintf(stderr, "landlock_cases: %s: %s\n", argv[1], strerror(-r));
		return FAILED;
	}
	for (int at = 0, end; at < t.count; at = end) {
		end = at + 1;
		while (end < t.count && !is_case(t.lines[end]))
			end++;
		if (!is_case(t.lines[at]))
			continue;
		r = fork_case(&t, at, end);
		count[r >= 0 && r <= SKIPPED ? r : FAILED]++;
	}
	for (int i = 0; i < t.count; i++)
		free(t.lines[i]);
	free(t.lines);
	printf("%d cases as written, %d not, %d broken, %d not for this kernel\n", count[FINE],
	       count[WRONG], count[FAILED], count[SKIPPED]);
	return count[FAILED] ? FAILED : count[WRONG] ? WRONG : count[FINE] ? FINE : NOT_HERE;
}
