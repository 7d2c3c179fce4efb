/*
 * landlock_oracle: asks the kernel and the model the same, and says where they differ.
 *
 *   landlock_oracle [--seed N] [--verdicts N] [--differences N] [--user]
 *
 * --differences: give up after so many (20). --user: as an ordinary user (we must be root), in a
 * world that root furnished with mounts. Exit: 0 no difference, 1 differences, 2 usage, 3 it can't
 * be done here (77: no Landlock), 4 too little of some kind was asked to prove much.
 */
#include <fcntl.h>
#include <getopt.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "oracle.h"

#define NOBODY	  65534
#define ROUND_OPS 40

enum { AGREE = 0, DIFFER = 1, USAGE = 2, FAILED = 3, UNBALANCED = 4, NO_LANDLOCK = 77 };

static const char *const op_names[ORACLE_OPS] = {
	"open", "create",  "tmpfile", "truncate", "ftruncate", "exec", "ioctl",
	"make", "symlink", "bind",    "remove",	  "rename",    "link",
};

static struct {
	long verdicts, ok, eacces, exdev, cross_mount, skipped, differences;
	long by_op[ORACLE_OPS];
	double model_s;
} found;

static void serve(const struct oracle_world *w, int in, int out)
{
	struct oracle_request q;
	int answer;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (unsigned int i = 0; i < w->domain.count; i++)
		if (llruleset_restrict(w->domain.layers[i]) < 0)
			_exit(FAILED);
	while (read(in, &q, sizeof(q)) == sizeof(q)) {
		answer = oracle_try(&q);
		if (write(out, &answer, sizeof(answer)) != sizeof(answer))
			break;
	}
	_exit(0);
}

static void differ(const struct oracle_world *w, const struct oracle_request *q, int model,
		   int kernel)
{
	if (found.differences++ >= 3)
		return;
	fprintf(stderr,
		"seed %llu: %s %s %s flags %#x mode %o dev %#lx ioctl %#lx: model %d, kernel "
		"%d\n%s",
		(unsigned long long)w->seed, op_names[q->op], q->path, q->path2,
		(unsigned int)q->flags, q->mode, (unsigned long)q->dev, q->ioctl, model, kernel,
		w->rules);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The tree is as the kernel left it. */
static void follow(struct oracle_world *w, const struct oracle_request *q)
{
	switch (q->op) {
	case ORACLE_CREATE:
	case ORACLE_MAKE:
	case ORACLE_SYMLINK:
	case ORACLE_BIND:
		oracle_remember(w, q->path);
		break;
	case ORACLE_LINK:
		oracle_remember(w, q->path2);
		break;
	case ORACLE_REMOVE:
	case ORACLE_RENAME:
		oracle_rescan(w);
		break;
	case ORACLE_OPEN:
	case ORACLE_TMPFILE:
	case ORACLE_TRUNCATE:
	case ORACLE_FTRUNCATE:
	case ORACLE_EXEC:
	case ORACLE_IOCTL:
	case ORACLE_OPS:
		break;
	}
}

static int ask_kernel(const struct oracle_request *q, int to, int from, int *ret)
{
	return write(to, q, sizeof(*q)) == sizeof(*q) &&
			       read(from, ret, sizeof(*ret)) == sizeof(*ret)
		       ? 0
		       : -EPIPE;
}

/* A refusal by Landlock is exactly what the model says; any other error is somebody else's. */
static int compare(struct oracle_world *w, const struct oracle_request *q, int to, int from)
{
	int model = 1, kernel, r, landlock;
	double begin = now();

	r = oracle_predict(w, q, &model);
	found.model_s += now() - begin;
	if (ask_kernel(q, to, from, &kernel) < 0)
		return -EPIPE;
	landlock = kernel == -EACCES || kernel == -EXDEV ? kernel : 0;
	if (r < 0 || model != landlock)
		differ(w, q, r < 0 ? r : model, kernel);
	found.verdicts++;
	found.by_op[q->op]++;
	found.ok += kernel == 0;
	found.eacces += kernel == -EACCES;
	found.exdev += kernel == -EXDEV;
	if (kernel == 0)
		follow(w, q);
	return 0;
}

static int ask(struct oracle_world *w, int to, int from)
{
	struct oracle_request q;
	int kernel, r;

	if (!oracle_choose(w, &q))
		return 0;
	switch (oracle_vfs_matter(&q)) {
	case ORACLE_LANDLOCKS:
		return compare(w, &q, to, from);
	case ORACLE_VFS_XDEV:
		r = ask_kernel(&q, to, from, &kernel);
		if (r == 0 && kernel != -EXDEV)
			differ(w, &q, -EXDEV, kernel);
		found.cross_mount++;
		return r;
	default:
		found.skipped++;
		return 0;
	}
}

static int round_of(struct oracle_world *w)
{
	int to[2], from[2], status, r;
	pid_t pid;

	r = oracle_lay(w);
	if (r < 0)
		return r;
	if (pipe2(to, O_CLOEXEC) < 0 || pipe2(from, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		close(to[1]);
		close(from[0]);
		serve(w, to[0], from[1]);
	}
	close(to[0]);
	close(from[1]);
	for (int i = 0; r == 0 && pid > 0 && i < ROUND_OPS; i++)
		r = ask(w, to[1], from[0]);
	close(to[1]);
	close(from[0]);
	oracle_unlay(w);
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
		return -ECHILD;
	return r;
}

static int become(uid_t uid)
{
	return setgroups(0, NULL) || setresgid(uid, uid, uid) || setresuid(uid, uid, uid) ? -1 : 0;
}

/* The child's mounts end with it. */
static int furnish(struct oracle_world *w, bool user)
{
	umask(0);
	if (geteuid() == 0 &&
	    (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	     oracle_mount_inside(w)))
		return -1;
	return user ? become(NOBODY) : 0;
}

/* A comparison of nothing but refusals would prove little. */
static int verdict(const struct oracle_world *w)
{
	bool enough = found.ok > found.verdicts / 10 && found.eacces > found.verdicts / 10 &&
		      found.exdev > found.verdicts / 200;

	fprintf(stderr,
		"seed %llu: %ld verdicts (%ld ok, %ld EACCES, %ld EXDEV), %ld across mounts, %ld "
		"skipped, %ld differences, %.1f us a verdict of the model%s\n",
		(unsigned long long)w->seed, found.verdicts, found.ok, found.eacces, found.exdev,
		found.cross_mount, found.skipped, found.differences,
		found.model_s * 1e6 / (double)(found.verdicts + 1), w->overlay ? ", overlay" : "");
	if (found.differences)
		return DIFFER;
	for (int op = 0; op < ORACLE_OPS; op++) {
		if (found.by_op[op] <= found.verdicts / 200) {
			fprintf(stderr, "only %ld of %s\n", found.by_op[op], op_names[op]);
			enough = false;
		}
	}
	return enough ? AGREE : UNBALANCED;
}

struct options {
	uint64_t seed;
	long verdicts;
	long differences;
	bool user;
};

static int drive(struct oracle_world *w, const struct options *o)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (furnish(w, o->user) < 0) {
		perror("landlock_oracle: the world can't be made");
		return FAILED;
	}
	while (found.verdicts < o->verdicts && found.differences < o->differences) {
		oracle_say(w->focus, sizeof(w->focus), "%s", w->root);
		oracle_grow(w);
		int r = round_of(w);

		if (r < 0) {
			fprintf(stderr, "landlock_oracle: seed %llu: %s\n",
				(unsigned long long)w->seed, strerror(-r));
			return FAILED;
		}
		if (w->count > ORACLE_NODES_MAX / 4)
			oracle_clear(w);
	}
	oracle_clear(w);
	return verdict(w);
}

static bool parse(int argc, char **argv, struct options *ret)
{
	static const struct option known[] = {
		{"seed", required_argument, NULL, 's'},
		{"verdicts", required_argument, NULL, 'v'},
		{"differences", required_argument, NULL, 'd'},
		{"user", no_argument, NULL, 'u'},
		{0},
	};
	int c;

	while ((c = getopt_long(argc, argv, "", known, NULL)) != -1) {
		if (c == 's')
			ret->seed = strtoull(optarg, NULL, 10);
		else if (c == 'v')
			ret->verdicts = strtol(optarg, NULL, 10);
		else if (c == 'd')
			ret->differences = strtol(optarg, NULL, 10);
		else if (c == 'u')
			ret->user = true;
		else
			return false;
	}
	return optind == argc;
}

/* The child's mounts end with it; then what is left of the tree can be removed. */
int main(int argc, char **argv)
{
	static struct oracle_world w;
	struct options o = {.seed = (uint64_t)time(NULL) * 1000 + (uint64_t)getpid() % 1000,
			    .verdicts = 6000,
			    .differences = 20};
	int status;
	pid_t pid;

	if (!parse(argc, argv, &o))
		return USAGE;
	if (llabi_detect(&w.kernel) < 0 || w.kernel.abi < 2)
		return NO_LANDLOCK;
	w.seed = w.random = o.seed;
	strcpy(w.root, "/tmp/warder-llmodel-XXXXXX");
	if (!mkdtemp(w.root) || (o.user && chown(w.root, NOBODY, NOBODY) < 0))
		return FAILED;
	pid = fork();
	if (pid == 0)
		_exit(drive(&w, &o));
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return FAILED;
	oracle_clear(&w);
	if (rmdir(w.root) < 0 || !WIFEXITED(status))
		return FAILED;
	return WEXITSTATUS(status);
}
