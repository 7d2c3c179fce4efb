/*
 * `warder ask`: the questions of runs with --ask socket, answered in this terminal.
 */
#include "supervisor/cli.h"

#include "supervisor/desk.h"
#include "supervisor/environ.h"
#include "supervisor/escape.h"
#include "supervisor/prompt.h"
#include "supervisor/prose.h"
#include "supervisor/visit.h"
#include "tracer/util.h"

#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/socket.h>

#define RUNS_MAX      16
#define RUN_NAME_SIZE 33
#define ONCE_MS	      300 /* what a run has to ask has come by then */

static const char help[] =
	"Usage: warder ask [--once] [RUN]\n"
	"       warder ask --json [RUN]\n"
	"Answer the questions of runs that were started with --ask socket: of every run\n"
	"that there is or that comes, or of the one whose name begins with RUN (it\n"
	"says so itself when a question waits).\n"
	"\n"
	"  --once            end as soon as nothing is left to answer (for a tmux popup)\n"
	"  --json            no terminal: one run's events on stdout, answers on stdin\n"
	"  -h, --help        this text\n"
	"\n"
	"Ctrl-C says no to what stands on the screen and ends; the rest stays open.\n"
	"\n"
	"  warder run --ask socket -- make      in one terminal, or in an editor's task\n"
	"  tmux popup -EE 'warder ask --once'   in another\n"
	"\n"
	"Status: 0 fine, 1 no such run, or nothing to answer, 2 usage, 125 failed.\n";

struct asked_run {
	struct visit *visit; /* NULL: free */
	char name[RUN_NAME_SIZE];
	bool gone;
};

struct asking {
	struct loop *loop;
	struct ask *ask;
	struct prompt *prompt;
	struct store store;
	char *dir; /* owned: the sockets' */
	int inotify;
	uint64_t watch, sweep, once_timer;
	struct asked_run run[RUNS_MAX];
	const char *wanted; /* the beginning of a run's name, or NULL: all */
	bool once;
	bool met;      /* a run was visited */
	bool answered; /* a question stood */
};

/* ---- runs come and go ---- */

static size_t runs(const struct asking *k)
{
	size_t n = 0;
	for (size_t i = 0; i < RUNS_MAX; i++)
		n += k->run[i].visit && !k->run[i].gone;
	return n;
}

static void on_sweep(void *arg)
{
	struct asking *k = arg;
	k->sweep = 0;
	for (size_t i = 0; i < RUNS_MAX; i++) {
		if (!k->run[i].gone)
			continue;
		visit_free(k->run[i].visit);
		k->run[i] = (struct asked_run){0};
	}
	if (!runs(k) && (k->wanted || k->once))
		loop_stop(k->loop);
}

/* Which run asks: a line or two, however long its command is. */
static void on_begun(void *arg, struct visit *v, const char *run, const char *label,
		     const char *command)
{
	struct asking *k = arg;
	(void)v;
	if (!k->prompt)
		return;
	size_t columns = prompt_columns(k->prompt), width = columns > 40 ? columns - 1 : 39;
	struct buf text = {0}, line = {0};
	buf_addf(&text, "run %.8s", run);
	if (label) {
		buf_add_str(&text, " (");
		escape_add_fit(&text, label, width / 2);
		buf_add_char(&text, ')');
	}
	buf_add_str(&text, ": ");
	escape_add_fit(&text, command, width);
	buf_add_str(&line, "warder: ");
	prose_add(&line, buf_str(&text), strlen("warder: "), width);
	prompt_make_way(k->prompt);
	fputs(buf_str(&line), stderr);
	buf_free(&line);
	buf_free(&text);
}

static void on_gone(void *arg, struct visit *v, const char *why)
{
	struct asking *k = arg;
	for (size_t i = 0; i < RUNS_MAX; i++) {
		if (k->run[i].visit != v)
			continue;
		k->run[i].gone = true;
		/* Its questions go with it: not without a word. */
		prompt_make_way(k->prompt);
		cli_complain("run %.8s: %s", k->run[i].name, why ? why : "ended");
	}
	if (!k->sweep)
		loop_add_timer(k->loop, 0, on_sweep, k, &k->sweep);
}

static bool is_wanted(const struct asking *k, const char *name)
{
	if (strlen(name) != RUN_NAME_SIZE - 1 ||
	    strspn(name, "0123456789abcdef") != RUN_NAME_SIZE - 1)
		return false;
	return !k->wanted || !strncmp(name, k->wanted, strlen(k->wanted));
}

static struct asked_run *place_for(struct asking *k, const char *name)
{
	struct asked_run *place = NULL;
	for (size_t i = 0; i < RUNS_MAX; i++) {
		if (k->run[i].visit && !strcmp(k->run[i].name, name))
			return NULL;
		if (!k->run[i].visit)
			place = &k->run[i];
	}
	return place;
}

static void visit_run(struct asking *k, const char *name)
{
	const struct visit_hooks hooks = {.arg = k, .begun = on_begun, .gone = on_gone};
	struct asked_run *place = is_wanted(k, name) ? place_for(k, name) : NULL;
	if (!place)
		return;
	int fd = desk_connect(k->store.state_dir, name);
	if (fd < 0)
		return; /* it is gone, or not there yet: then it comes with a next event */
	memcpy(place->name, name, RUN_NAME_SIZE);
	if (!visit_new(k->loop, k->ask, fd, &hooks, &place->visit)) {
		k->met = true;
		return;
	}
	prompt_make_way(k->prompt);
	cli_complain("run %.8s can't be visited: no memory", name);
}

static void look_around(struct asking *k)
{
	struct dirent *e;
	DIR *d = opendir(k->dir);
	while (d && (e = readdir(d)))
		visit_run(k, e->d_name);
	if (d)
		closedir(d);
}

static void on_change(void *arg, int fd, uint32_t events)
{
	char text[4096] __attribute__((aligned(8)));
	(void)events;
	while (read(fd, text, sizeof text) > 0)
		;
	look_around(arg);
}

/* ---- the queue ---- */

static void on_once(void *arg)
{
	struct asking *k = arg;
	k->once_timer = 0;
	if (!ask_len(k->ask))
		loop_stop(k->loop);
}

static void wait_once(struct asking *k)
{
	loop_remove(k->loop, k->once_timer);
	k->once_timer = 0;
	if (k->once && loop_add_timer(k->loop, ONCE_MS, on_once, k, &k->once_timer))
		loop_stop(k->loop);
}

static void on_asked(void *self, const struct question *q)
{
	struct asking *k = self;
	(void)q;
	k->answered = true;
}

static void on_settled(void *self, const struct question *q, const struct answer *a)
{
	(void)q, (void)a;
	wait_once(self);
}

static void on_cancelled(void *self, const struct question *q, const char *reason)
{
	(void)q, (void)reason;
	wait_once(self);
}

static void on_signal(void *arg, const struct signalfd_siginfo *info)
{
	struct asking *k = arg;
	(void)info;
	loop_stop(k->loop);
}

static void on_window(void *arg, const struct signalfd_siginfo *info)
{
	struct asking *k = arg;
	(void)info;
	if (k->prompt)
		prompt_make_way(k->prompt);
}

static void on_interrupt(void *arg)
{
	struct asking *k = arg;
	loop_stop(k->loop);
}

/* ---- in a terminal ---- */

static int watch_directory(struct asking *k)
{
	k->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (k->inotify < 0 || inotify_add_watch(k->inotify, k->dir, IN_MOVED_TO) < 0)
		return -errno;
	return loop_add_fd(k->loop, k->inotify, EPOLLIN, on_change, k, &k->watch);
}

static int open_queue(struct asking *k)
{
	extern char **environ;
	const char *no = environ_get(environ, "NO_COLOR");
	const struct ask_front counts = {
		.self = k, .asked = on_asked, .settled = on_settled, .cancelled = on_cancelled};
	const struct prompt_options o = {.home = k->store.home,
					 .color = !(no && *no),
					 .dumb = prompt_is_dumb(environ),
					 .own_lines = true,
					 .interrupt = on_interrupt,
					 .arg = k};
	int err = loop_new(&k->loop);
	if (!err)
		err = ask_new(k->loop, 0, visit_answered, k, &k->ask);
	if (err)
		return err;
	ask_set_stack(k->ask, visit_stack);
	err = ask_add_front(k->ask, &counts);
	for (size_t i = 0; !err && i < 3; i++)
		err = loop_take_signal(k->loop, (const int[]){SIGINT, SIGTERM, SIGHUP}[i],
				       on_signal, k);
	if (!err)
		err = loop_take_signal(k->loop, SIGWINCH, on_window, k);
	if (!err)
		err = prompt_new(k->loop, k->ask, NULL, &o, &k->prompt);
	return err;
}

static void close_queue(struct asking *k)
{
	prompt_free(k->prompt);
	for (size_t i = 0; i < RUNS_MAX; i++)
		visit_free(k->run[i].visit);
	if (k->ask)
		ask_free(k->ask);
	if (k->inotify >= 0)
		close(k->inotify);
	if (k->loop)
		loop_free(k->loop);
}

static int ask_here(struct asking *k)
{
	int err = open_queue(k);
	if (err == -ENXIO) {
		cli_complain("ask needs a terminal to ask on; without one: warder ask --json");
		return CLI_EXIT_TROUBLE;
	}
	if (!err)
		err = watch_directory(k);
	if (err) {
		cli_complain("questions can't be waited for in %s: %s", k->dir, strerror(-err));
		return CLI_EXIT_TROUBLE;
	}
	look_around(k);
	if (!k->met && k->wanted) {
		cli_complain("no run whose name begins with %s waits for answers", k->wanted);
		return 1;
	}
	wait_once(k);
	if (!k->once && !k->met)
		fprintf(stderr, "warder: no run waits for answers yet; Ctrl-C ends\n");
	err = loop_run(k->loop);
	if (err) {
		cli_complain("questions can't be waited for: %s", strerror(-err));
		return CLI_EXIT_TROUBLE;
	}
	if (!k->once || k->answered)
		return 0;
	cli_complain("nothing waits for an answer");
	return 1;
}

/* ---- for a program ---- */

/* All that is there, on its way. 0 at the end, 1 goes on, -errno. */
static int pass(int from, int to)
{
	char bytes[16384];
	ssize_t n = read(from, bytes, sizeof bytes);
	if (n < 0)
		return errno == EINTR || errno == EAGAIN ? 1 : -errno;
	for (ssize_t at = 0; at < n;) {
		ssize_t put = write(to, bytes + at, (size_t)(n - at));
		if (put < 0 && errno != EINTR)
			return -errno;
		at += put < 0 ? 0 : put;
	}
	return n > 0;
}

/* Until the run ends; the end of our stdin leaves what is asked to others. */
static int pass_both(int fd)
{
	struct pollfd p[] = {{.fd = fd, .events = POLLIN}, {.fd = STDIN_FILENO, .events = POLLIN}};
	for (;;) {
		if (poll(p, ARRAY_LEN(p), -1) < 0 && errno != EINTR)
			return -errno;
		int r = p[0].revents ? pass(fd, STDOUT_FILENO) : 1;
		if (r <= 0)
			return r;
		if (!p[1].revents)
			continue;
		r = pass(STDIN_FILENO, fd);
		if (r < 0)
			return r;
		if (!r)
			p[1].fd = -1;
	}
}

/* How many there are; of the first, *ret_fd: connecting is how one finds out, and is a visit. */
static int find_runs(const struct asking *k, int *ret_fd)
{
	int found = 0;
	struct dirent *e;
	DIR *d = opendir(k->dir);
	while (d && (e = readdir(d))) {
		int fd = is_wanted(k, e->d_name) ? desk_connect(k->store.state_dir, e->d_name) : -1;
		if (fd < 0)
			continue;
		if (found++)
			close(fd);
		else
			*ret_fd = fd;
	}
	if (d)
		closedir(d);
	return found;
}

static int ask_as_json(struct asking *k)
{
	int fd AUTOCLOSE = -1;
	int n = find_runs(k, &fd);
	if (!n)
		cli_complain("no such run waits for answers; start one with: warder run --ask "
			     "socket");
	else if (n > 1)
		cli_complain("%d runs wait for answers; say which: warder ask --json RUN", n);
	if (n != 1)
		return 1;
	int err = pass_both(fd);
	if (err && err != -EPIPE) {
		cli_complain("the run is not reached any more: %s", strerror(-err));
		return CLI_EXIT_TROUBLE;
	}
	return 0;
}

/* ---- the subcommand ---- */

static int open_place(struct asking *k)
{
	extern char **environ;
	struct policy_error why = {0};
	if (store_open(environ, &k->store, &why)) {
		cli_complain("%s", why.text);
		return CLI_EXIT_TROUBLE;
	}
	int err = desk_prepare(k->store.state_dir);
	if (!err && asprintf(&k->dir, "%s/" DESK_DIRECTORY, k->store.state_dir) < 0)
		err = -ENOMEM;
	if (!err)
		return 0;
	cli_complain("%s: %s; XDG_STATE_HOME can name another place", k->store.state_dir,
		     strerror(k->store.state_error ? -k->store.state_error : -err));
	return CLI_EXIT_TROUBLE;
}

int cli_ask(int argc, char **argv)
{
	static const struct option options[] = {{"json", no_argument, NULL, 'j'},
						{"once", no_argument, NULL, '1'},
						{"help", no_argument, NULL, 'h'},
						{0}};
	struct asking k = {.inotify = -1};
	bool json = false;
	int c;
	opterr = 0;
	while ((c = getopt_long(argc, argv, "+h", options, NULL)) != -1) {
		if (c == 'h') {
			fputs(help, stdout);
			return 0;
		}
		if (c == '?') {
			cli_complain("ask: unknown option '%s'; see warder ask --help",
				     argv[optind - 1]);
			return CLI_EXIT_USAGE;
		}
		json |= c == 'j';
		k.once |= c == '1';
	}
	k.wanted = argv[optind];
	if ((k.wanted && argv[optind + 1]) || (json && k.once)) {
		cli_complain("ask takes one RUN at most, and either --once or --json; see warder "
			     "ask --help");
		return CLI_EXIT_USAGE;
	}
	int status = open_place(&k);
	if (!status)
		status = json ? ask_as_json(&k) : ask_here(&k);
	close_queue(&k);
	free(k.dir);
	store_release(&k.store);
	return status;
}
