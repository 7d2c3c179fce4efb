/*
 * The question on a real terminal, over programs that write, wait for keys, or paint the screen.
 */
#include "tty_help.h"

#include <criterion/criterion.h>

TestSuite(prompt, .timeout = 60);

static void start(struct person *p, const char *script, const struct supervisor_options *o)
{
	char *argv[] = {"sh", "-c", (char *)(uintptr_t)script, NULL};
	cr_assert(tty_start(p, argv, o), "no start: %s", buf_str(&p->words));
}

static void end(struct person *p, int status)
{
	int got = tty_end(p);
	cr_assert_eq(got, status, "status %d, screen: %s", got, buf_str(&p->seen));
	cr_assert(tty_same_settings(p), "the terminal is as it was");
	tty_leave(p);
}

/* Ask, and wait until keys are for the question. */
static void ask(struct person *p)
{
	kill(p->supervisor, SIGUSR1);
	cr_assert(tty_expect(p, "asks to read", 3000), "%s", buf_str(&p->seen));
	cr_assert(tty_expect(p, "[?] help", 3000), "%s", buf_str(&p->seen));
}

/* Every number once and in order; a line that the question cut may be there twice. */
static void assert_ticks(const char *text)
{
	long last = 0;
	for (const char *t = text; (t = strstr(t, "tick ")); t++) {
		long n = atol(t + 5);
		cr_assert(n == last + 1 || n == last, "%ld after %ld", n, last);
		last = n;
	}
	cr_assert_gt(last, 20);
}

Test(prompt, nothing_mixes_with_it)
{
	char *argv[] = {FIXTURES "/tty_ticks", NULL};
	struct person p;
	cr_assert(tty_start(&p, argv, NULL));
	for (int i = 0; i < 5; i++) {
		cr_assert(tty_expect(&p, "tick ", 3000));
		kill(p.supervisor, SIGUSR1);
		cr_assert(tty_expect(&p, "warder: cat asks to read\r", 3000));
		const char *rest = tty_watch(&p, 300);
		cr_assert(!strstr(rest, "[?] help"), "%s", rest);
		cr_assert(!strstr(rest, "tick"), "%s", rest);
		cr_assert(tty_expect(&p, "[?] help", 3000));
		rest = tty_watch(&p, 100);
		cr_assert(!strstr(rest, "tick"), "%s", rest);
		tty_type(&p, "y");
		cr_assert(tty_expect(&p, "warder: allowed once: read /denied/", 3000));
		cr_assert(tty_expect(&p, "tick ", 3000));
		tty_watch(&p, 30);
	}
	tty_type(&p, "x\r");
	cr_assert(tty_expect(&p, "end by 120", 3000));
	assert_ticks(buf_str(&p.seen));
	end(&p, 0);
}

Test(prompt, a_flood_waits)
{
	struct person p;
	start(&p, FIXTURES "/tty_ticks 30000", NULL);
	cr_assert(tty_expect(&p, "tick 50", 3000));
	kill(p.supervisor, SIGUSR1);
	cr_assert(tty_expect(&p, "[?] help", 3000));
	cr_assert(!strstr(tty_watch(&p, 400), "tick"));
	tty_type(&p, "n");
	cr_assert(tty_expect(&p, "tick 30000\r\n", 10000));
	assert_ticks(buf_str(&p.seen));
	end(&p, 0);
}

Test(prompt, keys_typed_ahead_are_the_programs)
{
	struct person p;
	start(&p, "stty raw -echo; echo ready; head -c 4 | od -An -c; stty sane", NULL);
	cr_assert(tty_expect(&p, "ready", 3000));
	tty_watch(&p, 50);
	tty_type(&p, "y");
	kill(p.supervisor, SIGUSR1);
	cr_assert(tty_expect(&p, "keys count once", 3000));
	tty_type(&p, "n"); /* too early: not an answer */
	cr_assert(tty_expect(&p, "[?] help", 3000));
	cr_assert(!strstr(buf_str(&p.words), "deny") && !strstr(buf_str(&p.words), "allow"));
	tty_type(&p, "s");
	cr_assert(tty_told(&p, "allow /denied/1 0 session", 3000));
	tty_type(&p, "cd");
	cr_assert(tty_expect(&p, "y   n   c   d", 3000), "%s", buf_str(&p.seen));
	end(&p, 0);
}

/*
 * Somebody goes on typing, a key each `gap` ms, while a question appears. Where this machine let
 * more than twice as much pass between two keys it was no such typing: false.
 */
static bool type_on(struct person *p, const char *key, int gap, int ms)
{
	int64_t begun = tty_now(), last = begun;
	while (last - begun < ms) {
		tty_type(p, key);
		tty_watch(p, gap);
		int64_t now = tty_now();
		if (now - last > gap + 250)
			return false;
		last = now;
	}
	return true;
}

/* ... as often as it takes; what was answered in a torn one is nobody's fault. */
static bool nothing_is_answered(const struct supervisor_options *o, const char *key, int gap)
{
	for (int i = 0; i < 5; i++) {
		struct person p;
		start(&p, "stty raw -echo; echo ready; exec sleep 60", o);
		cr_assert(o->no_pty || tty_expect(&p, "ready", 3000));
		tty_type(&p, key);
		kill(p.supervisor, SIGUSR1);
		bool whole = type_on(&p, key, gap, 1100);
		tty_read(p.told, &p.words, 0);
		bool none = !strstr(buf_str(&p.words), "/denied/");
		bool waits = !strstr(buf_str(&p.seen), "[?] help");
		bool answered = false;
		if (whole && none && waits && tty_expect(&p, "[?] help", 5000)) {
			tty_type(&p, "a");
			answered = tty_told(&p, "allow /denied/1 0 always", 3000);
		}
		kill(p.supervisor, SIGKILL);
		tty_leave(&p);
		if (whole)
			return none && waits && answered;
	}
	cr_log_warn("this machine does not let anybody type");
	return true;
}

Test(prompt, typing_answers_nothing_until_it_pauses)
{
	const struct supervisor_options own = {.no_pty = true}, inner = {0};
	cr_expect(nothing_is_answered(&inner, "a", 50));
	cr_expect(nothing_is_answered(&own, "y", 100));
	cr_expect(nothing_is_answered(&own, "a", 200));
	cr_expect(nothing_is_answered(&inner, "\x1b", 200));
	cr_expect(nothing_is_answered(&inner, "a", 300));
}

/* A paste goes on in the question, and has a pause in it. */
Test(prompt, a_paste_that_pauses_is_one)
{
	struct person p;
	start(&p, "stty raw -echo; echo ready; exec sleep 60", NULL);
	cr_assert(tty_expect(&p, "ready", 3000));
	kill(p.supervisor, SIGUSR1);
	cr_assert(tty_expect(&p, "keys count once", 3000));
	tty_type(&p, "\x1b[200~one");
	tty_watch(&p, 1200);
	cr_assert(!strstr(buf_str(&p.seen), "[?] help"));
	tty_type(&p, "a\x03\x1b[201~");
	cr_assert(tty_expect(&p, "[?] help", 3000));
	cr_assert(!strstr(buf_str(&p.words), "/denied/"), "%s", buf_str(&p.words));
	tty_type(&p, "n");
	cr_assert(tty_told(&p, "deny /denied/1 0 session", 3000), "%s", buf_str(&p.words));
	kill(p.supervisor, SIGKILL);
	tty_leave(&p);
}

Test(prompt, an_interrupt_is_never_too_early)
{
	const struct supervisor_options own = {.no_pty = true}, inner = {0};
	const struct supervisor_options *const both[] = {&own, &inner};
	for (size_t i = 0; i < ARRAY_LEN(both); i++) {
		struct person p;
		start(&p, "trap 'exit 3' INT; echo ready; while :; do sleep 0.05; done", both[i]);
		cr_assert(tty_expect(&p, "ready", 3000));
		kill(p.supervisor, SIGUSR1);
		cr_assert(tty_expect(&p, "keys count once", 3000));
		tty_type(&p, "al\x03");
		cr_assert(tty_told(&p, "deny /denied/1 0 session", 3000), "%s", buf_str(&p.words));
		cr_assert(!strstr(buf_str(&p.seen), "[?] help"), "it waited for that");
		kill(p.supervisor, SIGKILL);
		tty_leave(&p);
	}
}

static const struct {
	const char *keys;
	const char *told; /* with %d for the question's number */
} keys[] = {
	{"y", "allow /denied/%d 0 once\n"},
	{"o", "allow /denied/%d 0 once\n"},
	{"s", "allow /denied/%d 0 session\n"},
	{"a", "allow /denied/%d 0 always\n"},
	{"n", "deny /denied/%d 0 session\n"},
	{"\r", "deny /denied/%d 0 session\n"},
	{"\n", "deny /denied/%d 0 session\n"},
	{"\x04", "deny /denied/%d 0 session\n"},
	{"\x1b", "deny /denied/%d 0 session\n"},
	{"N", "deny /denied/%d 0 always\n"},
	{"v", "deny /denied/%d 0 always\n"},
	{"2s", "allow /denied/%d 1 session\n"},
	{"3y", "allow /denied/%d 2 once\n"},
	{"4y", "allow /denied/%d 0 once\n"}, /* no such scope */
	{"0y", "allow /denied/%d 0 once\n"},
	{"\x1b[By", "allow /denied/%d 1 once\n"},
	{"\x1b[B\x1b[B\x1b[By", "allow /denied/%d 2 once\n"},
	{"\x1bOB\x1bOB\x1bOAy", "allow /denied/%d 1 once\n"},
	{"\x1b[Ay", "allow /denied/%d 0 once\n"},
	{"jjky", "allow /denied/%d 1 once\n"},
	{"d?d?y", "allow /denied/%d 0 once\n"},
	{"Y \tqzSA\x1a\x1c\x7fn", "deny /denied/%d 0 session\n"},
	{"\xc3\xbf\xe6\xbc\xa2n", "deny /denied/%d 0 session\n"},
	{"\x1bys", "allow /denied/%d 0 session\n"},		     /* Alt-y is no yes */
	{"\x1b[200~yes\r\x1b[201~n", "deny /denied/%d 0 session\n"}, /* pasted */
	{"\x1b[15~\x1b[1;5Cn", "deny /denied/%d 0 session\n"},	     /* F5, Ctrl-right */
};

Test(prompt, every_key)
{
	struct person p;
	start(&p, "echo ready; read x; exit 5", NULL);
	cr_assert(tty_expect(&p, "ready", 3000));
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		char want[64], number[16];
		snprintf(number, sizeof(number), "%zu", i + 1);
		const char *at = strstr(keys[i].told, "%d");
		snprintf(want, sizeof(want), "%.*s%s%s", (int)(at - keys[i].told), keys[i].told,
			 number, at + 2);
		ask(&p);
		tty_type(&p, keys[i].keys);
		cr_assert(tty_told(&p, want, 3000), "row %zu: %s", i, buf_str(&p.words));
		tty_watch(&p, 20);
	}
	tty_type(&p, "\r");
	end(&p, 5);
}

Test(prompt, an_arrow_in_two_pieces_is_no_escape)
{
	struct person p;
	start(&p, "echo ready; read x; exit 5", NULL);
	cr_assert(tty_expect(&p, "ready", 3000));
	ask(&p);
	tty_type(&p, "\x1b");
	tty_watch(&p, 15);
	tty_type(&p, "[B");
	tty_watch(&p, 100);
	tty_type(&p, "y");
	cr_assert(tty_told(&p, "allow /denied/1 1 once", 3000), "%s", buf_str(&p.words));
	tty_type(&p, "\r");
	end(&p, 5);
}

Test(prompt, interrupt_is_no_to_all_and_reaches_the_command)
{
	const struct supervisor_options o = {.questions = 3};
	struct person p;
	start(&p, "trap 'echo got; exit 3' INT; echo ready; while :; do sleep 0.05; done", &o);
	cr_assert(tty_expect(&p, "ready", 3000));
	ask(&p);
	tty_type(&p, "\x03");
	cr_assert(tty_told(&p,
			   "deny /denied/1 0 session\ndeny /denied/2 0 session\n"
			   "deny /denied/3 0 session\n",
			   3000));
	cr_assert(tty_expect(&p, "got", 3000));
	end(&p, 3);
}

Test(prompt, several_one_by_one)
{
	const struct supervisor_options o = {.questions = 3};
	struct person p;
	start(&p, "echo ready; read x; echo got $x", &o);
	cr_assert(tty_expect(&p, "ready", 3000));
	ask(&p);
	cr_assert(strstr(p.seen.data, "(3 questions wait)"));
	tty_type(&p, "yyy"); /* one answer: the next question was not read yet */
	cr_assert(tty_told(&p, "allow /denied/1 0 once\n", 3000));
	cr_assert(tty_expect(&p, "(2 questions wait)", 3000));
	cr_assert(tty_expect(&p, "[?] help", 3000));
	cr_assert(!strstr(buf_str(&p.words), "/denied/2"));
	tty_type(&p, "n");
	cr_assert(tty_told(&p, "deny /denied/2 0 session\n", 3000));
	cr_assert(tty_expect(&p, "[?] help", 3000));
	tty_type(&p, "s\r");
	cr_assert(tty_told(&p, "allow /denied/3 0 session\n", 3000));
	cr_assert(tty_expect(&p, "got", 3000));
	end(&p, 0);
}

Test(prompt, several_by_one_answer)
{
	const struct supervisor_options o = {.questions = 4};
	struct person p;
	start(&p, "echo ready; read x; echo got $x", &o);
	cr_assert(tty_expect(&p, "ready", 3000));
	ask(&p);
	tty_type(&p, "A");
	cr_assert(tty_expect(&p, "The answer goes to all", 3000));
	tty_type(&p, "2s");
	cr_assert(tty_told(&p,
			   "allow /denied/1 1 session\nallow /denied/2 0 session\n"
			   "allow /denied/3 0 session\nallow /denied/4 0 session\n",
			   3000),
		  "%s", buf_str(&p.words));
	tty_type(&p, "\r");
	end(&p, 0);
}

Test(prompt, the_programs_line_comes_back)
{
	struct person p;
	start(&p, "printf '\\033[32mname: '; read x; echo got $x", NULL);
	cr_assert(tty_expect(&p, "name: ", 3000));
	kill(p.supervisor, SIGUSR1);
	cr_assert(tty_expect(&p, "\x1b[0m\r", 3000), "a fresh line, without colour");
	cr_assert(tty_expect(&p, "[?] help", 3000));
	tty_type(&p, "y");
	cr_assert(tty_expect(&p, "warder: allowed once: read /denied/", 3000));
	cr_assert(tty_expect(&p, "\x1b[32mname: ", 3000), "%s", buf_str(&p.seen));
	tty_type(&p, "bob\r");
	cr_assert(tty_expect(&p, "got bob", 3000));
	end(&p, 0);
}

Test(prompt, over_a_program_that_paints)
{
	char *argv[] = {FIXTURES "/tty_paint", NULL};
	struct person p;
	cr_assert(tty_start(&p, argv, NULL));
	cr_assert(tty_expect(&p, "<picture 80x24>", 3000));
	tty_type(&p, "k");
	cr_assert(tty_expect(&p, "<key 107>", 3000));
	kill(p.supervisor, SIGUSR1);
	cr_assert(tty_expect(&p, "\x1b[?1049l", 3000));
	cr_assert(tty_expect(&p, "\x1b[?25h", 3000));
	cr_assert(tty_expect(&p, "[?] help", 3000));
	struct termios now;
	tcgetattr(p.slave, &now);
	cr_assert(now.c_oflag & OPOST && !(now.c_lflag & (ICANON | ECHO | ISIG)), "sane");
	tty_type(&p, "yj");
	cr_assert(tty_expect(&p, "warder: allowed once", 3000));
	cr_assert(tty_expect(&p, "\x1b[?1049h", 3000));
	cr_assert(tty_expect(&p, "\x1b[?25l", 3000));
	cr_assert(tty_expect(&p, "<picture 80x23>", 3000), "it saw another size");
	cr_assert(tty_expect(&p, "<picture 80x24>", 3000), "and the right one");
	cr_assert(strstr(p.seen.data, "<key 106>"), "the key behind the answer");
	cr_assert(!strstr(p.seen.data, "<key 121>"), "and not the answer");
	tty_type(&p, "q");
	end(&p, 0);
}

Test(prompt, the_end_of_the_terminal_is_no)
{
	struct person p;
	start(&p, "echo ready; sleep 30", NULL);
	cr_assert(tty_expect(&p, "ready", 3000));
	ask(&p);
	close(p.screen);
	int64_t until = tty_now() + 5000;
	while (!strstr(buf_str(&p.words), "hangup") && tty_now() < until)
		tty_read(p.told, &p.words, 50);
	cr_assert(strstr(buf_str(&p.words), "deny /denied/1"), "%s", buf_str(&p.words));
	p.screen = open("/dev/null", O_RDWR | O_CLOEXEC);
	tty_end(&p);
	tty_leave(&p);
}

/* In the background the question is shown; keys are taken once we are in the foreground. */
Test(prompt, in_the_background)
{
	const struct supervisor_options o = {.background = true};
	struct person p;
	start(&p, "echo ready; sleep 5", &o);
	cr_assert(tty_expect(&p, "ready", 3000));
	kill(p.supervisor, SIGUSR1);
	cr_assert(tty_expect(&p, "keys count once", 3000));
	cr_assert(!strstr(tty_watch(&p, 1000), "[?] help"));
	cr_assert(tty_same_settings(&p));
	kill(p.leader, SIGUSR2);
	cr_assert(tty_becomes(&p, tty_is_raw, true, 2000));
	cr_assert(tty_expect(&p, "[?] help", 3000));
	tty_type(&p, "y");
	cr_assert(tty_told(&p, "allow /denied/1 0 once\n", 3000));
	end(&p, 0);
}

Test(prompt, without_an_inner_terminal)
{
	const struct supervisor_options o = {.no_pty = true, .questions = 2};
	struct person p;
	start(&p, "sleep 2; exit 4", &o);
	kill(p.supervisor, SIGUSR1);
	cr_assert(tty_expect(&p, "(2 questions wait)", 3000));
	tty_type(&p, "y"); /* too early: dropped */
	cr_assert(tty_expect(&p, "[?] help", 3000));
	cr_assert(!strstr(buf_str(&p.words), "/denied/1"));
	tty_type(&p, "y");
	cr_assert(tty_told(&p, "allow /denied/1 0 once\n", 3000));
	cr_assert(tty_expect(&p, "[?] help", 3000));
	tty_type(&p, "\x03");
	cr_assert(tty_told(&p, "deny /denied/2 0 session\n", 3000));
	cr_assert(tty_told(&p, "interrupt\n", 3000));
	cr_assert(tty_becomes(&p, tty_same_settings, true, 1000), "put back at once");
	end(&p, 4);
}

Test(prompt, in_a_pipeline)
{
	const struct supervisor_options o = {.piped_out = true, .piped_in = true};
	struct person p;
	start(&p, "echo ready; sleep 1; echo done", &o);
	cr_assert(tty_told(&p, "ready", 3000));
	ask(&p);
	tty_type(&p, "y");
	cr_assert(tty_told(&p, "allow /denied/1 0 once\n", 3000));
	cr_assert(tty_becomes(&p, tty_same_settings, true, 500));
	cr_assert(tty_told(&p, "done\n", 3000));
	end(&p, 0);
}
