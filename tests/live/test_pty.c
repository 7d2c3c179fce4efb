/*
 * The inner terminal against real terminals and real programs: what goes through, what comes back,
 * and that the real terminal is found as it was.
 */
#include "tty_help.h"

#include <criterion/criterion.h>

TestSuite(pty, .timeout = 60);

static char *sh(const char *script, char *argv[4])
{
	argv[0] = "sh";
	argv[1] = "-c";
	argv[2] = (char *)(uintptr_t)script;
	argv[3] = NULL;
	return argv[2];
}

static void start(struct person *p, const char *script, const struct supervisor_options *o)
{
	char *argv[4];
	sh(script, argv);
	cr_assert(tty_start(p, argv, o), "no start: %s", buf_str(&p->words));
}

static void end(struct person *p, int status)
{
	int got = tty_end(p);
	cr_assert_eq(got, status, "status %d, screen: %s", got, buf_str(&p->seen));
	cr_assert(tty_same_settings(p), "the terminal is as it was");
	tty_leave(p);
}

Test(pty, keys_and_output_pass)
{
	static const bool nobody[] = {false, true};
	for (size_t i = 0; i < ARRAY_LEN(nobody); i++) {
		const struct supervisor_options o = {.as_nobody = nobody[i] && !getuid()};
		struct person p;
		start(&p, "test -t 0 && test -t 1 && test -t 2 && tty && cat; exit 7", &o);
		cr_assert(tty_expect(&p, "/dev/pts/", 3000), "%s", buf_str(&p.seen));
		cr_assert(tty_becomes(&p, tty_is_raw, true, 1000));
		tty_type(&p, "hello\r");
		cr_assert(tty_expect(&p, "hello\r\nhello\r\n", 3000), "%s", buf_str(&p.seen));
		tty_type(&p, "\x04");
		end(&p, 7);
	}
}

Test(pty, the_command_has_its_own_terminal)
{
	struct person p;
	start(&p, "readlink /proc/self/fd/0; echo x > /dev/tty; ps -o tty= -p $$", NULL);
	char name[64] = "";
	cr_assert_eq(ttyname_r(p.slave, name, sizeof(name)), 0);
	cr_assert(tty_expect(&p, "x\r\n", 3000));
	cr_assert_eq(tty_end(&p), 0);
	cr_assert(!strstr(buf_str(&p.seen), name), "%s is the real one", name);
	tty_leave(&p);
}

Test(pty, settings_are_inherited)
{
	struct person p;
	start(&p, "stty -a", NULL);
	cr_assert(tty_expect(&p, "rows 24; columns 80", 3000), "%s", buf_str(&p.seen));
	cr_assert(tty_expect(&p, "erase = ^H", 1000));
	cr_assert(tty_expect(&p, " ixany", 1000));
	end(&p, 0);
}

Test(pty, window_size_passes)
{
	struct person p;
	start(&p, "trap 'stty size' WINCH; echo ready; while :; do sleep 0.05; done", NULL);
	cr_assert(tty_expect(&p, "ready", 3000));
	const struct winsize size = {.ws_row = 33, .ws_col = 111};
	ioctl(p.screen, TIOCSWINSZ, &size);
	cr_assert(tty_expect(&p, "33 111", 3000), "%s", buf_str(&p.seen));
	tty_type(&p, "\x03");
	end(&p, 64 + SIGINT);
}

Test(pty, interrupt_key_reaches_the_command_alone)
{
	struct person p;
	start(&p, "trap 'echo got; exit 3' INT; echo ready; while :; do sleep 0.05; done", NULL);
	cr_assert(tty_expect(&p, "ready", 3000));
	tty_type(&p, "\x03");
	cr_assert(tty_expect(&p, "got", 3000));
	end(&p, 3);
}

/* seq's lines, counted and compared one by one: nothing is lost, doubled or out of order. */
static void assert_numbers(const char *text, long count)
{
	char want[32];
	for (long i = 1; i <= count; i++) {
		int n = snprintf(want, sizeof(want), "%ld\r\n", i);
		cr_assert(!strncmp(text, want, (size_t)n), "at %ld: %.20s", i, text);
		text += n;
	}
}

Test(pty, ten_megabytes_unharmed)
{
	struct person p;
	start(&p, "seq 1 1500000", NULL);
	usleep(300000); /* nobody reads: the program has to wait, nothing is dropped */
	cr_assert(tty_expect(&p, "\n1500000\r\n", 40000));
	cr_assert_gt(p.seen.len, 10u << 20);
	assert_numbers(p.seen.data, 1500000);
	end(&p, 0);
}

Test(pty, a_big_paste_passes)
{
	struct person p;
	start(&p, "stty raw -echo; echo ready; head -c 300000 | md5sum", NULL);
	cr_assert(tty_expect(&p, "ready", 3000));
	char line[1001];
	for (int i = 0; i < 300; i++) {
		memset(line, 'a' + i % 26, 1000);
		line[1000] = '\0';
		tty_type(&p, line);
		tty_watch(&p, 1);
	}
	/* python3: hashlib.md5(b"".join(bytes([97 + i % 26]) * 1000 for i in range(300))) */
	cr_assert(tty_expect(&p, "0abf89693fe085cbb57a0b28b0bc8edd", 10000), "%s",
		  buf_str(&p.seen));
	end(&p, 0);
}

/* The last words come out, however late they were written. */
Test(pty, nothing_is_lost_at_the_end)
{
	for (int i = 0; i < 20; i++) {
		struct person p;
		start(&p, "seq 1 2000; printf last", NULL);
		cr_assert_eq(tty_end(&p), 0);
		assert_numbers(buf_str(&p.seen), 2000);
		cr_assert_str_eq(buf_str(&p.seen) + p.seen.len - 4, "last");
		tty_leave(&p);
	}
}

Test(pty, what_the_command_does_to_its_terminal_ends_with_it)
{
	struct person p;
	start(&p, "stty raw -echo -isig; printf '\\033[?25l'; kill -9 $$", NULL);
	end(&p, 64 + SIGKILL);
}

/* ---- jobs ---- */

Test(pty, suspended_and_continued)
{
	struct person p;
	start(&p, "echo one; kill -STOP $$; echo two; read x; echo got $x", NULL);
	cr_assert(tty_told(&p, "suspended", 3000));
	cr_assert(tty_becomes(&p, tty_same_settings, true, 1000), "put back for the shell");
	cr_assert(strstr(buf_str(&p.seen), "one"));
	cr_assert(!strstr(buf_str(&p.seen), "two"));
	usleep(50000);
	const struct winsize size = {.ws_row = 20, .ws_col = 70};
	ioctl(p.screen, TIOCSWINSZ, &size);
	kill(p.leader, SIGUSR2); /* fg */
	usleep(50000);
	kill(p.supervisor, SIGCONT);
	cr_assert(tty_expect(&p, "two", 3000), "%s", buf_str(&p.seen));
	cr_assert(tty_becomes(&p, tty_is_raw, true, 1000));
	tty_type(&p, "x\r");
	cr_assert(tty_expect(&p, "got x", 3000));
	end(&p, 0);
}

Test(pty, in_the_background_the_terminal_is_left_alone)
{
	const struct supervisor_options o = {.background = true};
	struct person p;
	start(&p, "echo hello; read x; echo got $x", &o);
	cr_assert(tty_expect(&p, "hello", 3000), "output is shown");
	tty_watch(&p, 500);
	cr_assert(tty_same_settings(&p), "no raw mode");
	kill(p.leader, SIGUSR2); /* fg of a running job sends no signal */
	cr_assert(tty_becomes(&p, tty_is_raw, true, 3000));
	tty_type(&p, "y\r");
	cr_assert(tty_expect(&p, "got y", 3000));
	end(&p, 0);
}

Test(pty, hangup_is_told)
{
	struct person p;
	start(&p, "sleep 30", NULL);
	cr_assert(tty_becomes(&p, tty_is_raw, true, 1000));
	close(p.screen);
	int64_t until = tty_now() + 5000;
	while (!strstr(buf_str(&p.words), "hangup") && tty_now() < until)
		tty_read(p.told, &p.words, 50);
	cr_assert(strstr(buf_str(&p.words), "hangup"), "%s", buf_str(&p.words));
	p.screen = open("/dev/null", O_RDWR | O_CLOEXEC);
	tty_end(&p);
	tty_leave(&p);
}

/* ---- pipelines ---- */

Test(pty, in_a_pipeline_nobodys_keys_are_taken)
{
	const struct supervisor_options o = {.piped_out = true};
	struct person p;
	start(&p, "echo out; test -t 0 && test -t 2 && echo err >&2; read x; echo got $x", &o);
	cr_assert(tty_told(&p, "out\n", 3000), "stdout passes as it is");
	cr_assert(tty_expect(&p, "err\r\n", 3000), "%s", buf_str(&p.seen));
	cr_assert(tty_same_settings(&p), "no raw mode");
	tty_type(&p, "line\r"); /* the real terminal is its stdin, echo and all */
	cr_assert(tty_expect(&p, "line", 3000));
	cr_assert(tty_told(&p, "got line\n", 3000));
	end(&p, 0);
}

/* As ssh asks for a password in `warder run ssh host | less`. */
Test(pty, in_a_pipeline_keys_follow_the_use_of_dev_tty)
{
	const struct supervisor_options o = {.piped_out = true, .piped_in = true};
	struct person p;
	start(&p,
	      "sleep 0.2; { printf 'Password: ' > /dev/tty; stty -echo; read x; stty echo; } < "
	      "/dev/tty;"
	      "echo pw $x; sleep 0.5",
	      &o);
	cr_assert(tty_expect(&p, "Password: ", 3000), "%s", buf_str(&p.seen));
	cr_assert(tty_becomes(&p, tty_is_raw, true, 2000));
	tty_watch(&p, 100);
	tty_type(&p, "secret\r");
	cr_assert(tty_told(&p, "pw secret\n", 3000), "%s", buf_str(&p.words));
	cr_assert(tty_becomes(&p, tty_same_settings, true, 300), "and end with it");
	cr_assert(!strstr(buf_str(&p.seen), "secret"), "not echoed");
	end(&p, 0);
}

Test(pty, in_a_pipeline_interrupt_is_the_jobs)
{
	const struct supervisor_options o = {.piped_in = true};
	struct person p;
	start(&p, "trap 'echo got; exit 3' INT; echo ready; while :; do sleep 0.05; done", &o);
	cr_assert(tty_expect(&p, "ready", 3000));
	cr_assert(tty_becomes(&p, tty_is_raw, true, 1000));
	tty_type(&p, "\x03");
	cr_assert(tty_told(&p, "signal 2", 3000), "the real terminal made a signal of it");
	cr_assert(tty_expect(&p, "got", 3000));
	end(&p, 3);
}

Test(pty, in_a_pipeline_an_editor_gets_the_key)
{
	const struct supervisor_options o = {.piped_in = true};
	struct person p;
	start(&p, "exec < /dev/tty; stty raw -echo; echo ready; head -c 1 | od -An -tu1; stty sane",
	      &o);
	cr_assert(tty_expect(&p, "ready", 3000));
	tty_watch(&p, 50);
	tty_type(&p, "\x03");
	cr_assert(tty_expect(&p, " 3", 3000), "%s", buf_str(&p.seen));
	cr_assert(!strstr(buf_str(&p.words), "signal"));
	end(&p, 0);
}
