"""
The fast path: what is said and done is the same with and without it, and what succeeds stops no
more.
"""

import os
import subprocess
import unittest

import run_help
from run_help import both_users, fixture, needs

OPENER = r"""
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
/* opener TIMES FILE...: each file so often, first here, then in a child; prints the last error. */
static void opens(int times, int n, char **file)
{
	for (int i = 0; i < n; i++) {
		int error = 0;
		for (int t = 0; t < times; t++) {
			int fd = open(file[i], O_RDONLY);
			error = fd < 0 ? errno : 0;
			if (fd >= 0)
				close(fd);
		}
		printf("%s %d\n", file[i], error);
	}
	fflush(stdout);
}
int main(int argc, char **argv)
{
	opens(atoi(argv[1]), argc - 2, argv + 2);
	pid_t pid = fork();
	if (!pid) {
		opens(atoi(argv[1]), argc - 2, argv + 2);
		_exit(0);
	}
	return waitpid(pid, NULL, 0) != pid;
}
"""

SPAWNER = r"""
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
static char *command[] = {"/bin/true", NULL};
static int run(void *nothing)
{
	execv(command[0], command);
	_exit(127);
}
static char stack[65536] __attribute__((aligned(16)));
/* spawner HOW TIMES: runs `true` so often. */
int main(int argc, char **argv)
{
	int good = 0, times = atoi(argv[2]);
	signal(SIGCHLD, strcmp(argv[1], "ignored") ? SIG_DFL : SIG_IGN);
	for (int i = 0; i < times; i++) {
		pid_t pid = -1;
		int status = 1;
		if (!strcmp(argv[1], "vfork"))
			(pid = vfork()) || run(NULL);
		else if (!strcmp(argv[1], "spawn"))
			posix_spawn(&pid, command[0], NULL, NULL, command, environ);
		else if (!strcmp(argv[1], "clone"))
			pid = clone(run, stack + sizeof stack, SIGCHLD, NULL);
		else
			(pid = fork()) || run(NULL);
		good += waitpid(pid, &status, 0) == pid ? status == 0 : !strcmp(argv[1], "ignored");
	}
	printf("%d of %d\n", good, times);
	return good != times;
}
"""


@unittest.skipUnless(os.uname().machine == "x86_64", "there is no other fast path")
class FastCase(run_help.RunCase):
    def setUp(self):
        super().setUp()
        self.env["PATH"] = "/usr/bin:/bin"
        self.good = self.write("project/good", "x")
        self.secret = self.write("outside/secret", "x")

    def both_ways(self, *command, args=()):
        done = {}
        for fast in ("on", "off"):
            # Two stops a call under a storm of signals take their time where they cross CPUs.
            done[fast] = self.run_report("--on-denial", "report", "--fast", fast, *args, "--", *command, timeout=100)
            self.assertEqual(fast == "on", done[fast].report["engine"]["fast"])
        on, off = done["on"], done["off"]
        self.assertEqual((off.out, off.err, off.status), (on.out, on.err, on.status))
        what = [[(d["path"], d["access"], d["verdict"], d["call"], d["errno"], d["count"], d["answer"])
                 for d in r.report["denials"]] for r in (on, off)]
        self.assertEqual(what[1], what[0], on)
        return on, off

    def stops(self, done):
        return done.report["engine"]["stops"]


@both_users
class Fast(FastCase):
    def build(self, *how, name="opener", compiler="cc", text=OPENER):
        source = self.write("home/opener.c", text)
        program = os.path.join(self.project, name)
        built = subprocess.run([compiler, *how, "-o", program, source], capture_output=True, text=True)
        if built.returncode:
            self.skipTest(f"{compiler} {how} can't build: {built.stderr[:200]}")
        return self.own(program)

    def test_what_is_handed_over_stops_twice(self):
        """A directory alone, and nothing in it, no Landlock rule can open: each open is handed over."""
        opener = self.build()
        times = 1000
        done = self.run_report("-x", opener, "--rule", f"allow list {self.outside} exact", "--",
                               opener, str(times), self.outside)
        self.assertStatus(done)
        self.assertEqual(f"{self.outside} 0\n" * 2, done.out)
        self.assertEqual(2 * times, done.report["engine"]["brokered"])
        self.assertLess(self.stops(done), 2 * times * 2.2, done)

    def assertFast(self, program, times=60):
        on, off = self.both_ways(program, str(times), self.good, self.secret, self.good + ".not")
        self.assertIn(f"{self.secret} 13", on.out)
        self.assertEqual(2 * times, on.denials(self.secret)[0]["count"])
        # One stop for each of the refused ones; of those that are not, a few.
        self.assertLess(self.stops(on), 2 * times + 200, on)
        self.assertGreater(self.stops(off), 2 * 6 * times, off)

    def test_dynamic(self):
        self.assertFast(self.build())

    def test_static(self):
        self.assertFast(self.build("-static"))

    def test_static_pie(self):
        self.assertFast(self.build("-static-pie"))

    @needs("musl-gcc")
    def test_musl(self):
        self.assertFast(self.build(compiler="musl-gcc"))

    @needs("musl-gcc")
    def test_static_musl(self):
        self.assertFast(self.build("-static", compiler="musl-gcc"))

    def test_32_bits_are_slow_and_right(self):
        on, off = self.both_ways(self.build("-m32"), "50", self.good, self.secret)
        self.assertEqual(self.stops(off), self.stops(on))

    def test_a_refused_creation_is_made_once(self):
        """O_CREAT|O_EXCL may leave its file behind: a second try would say EEXIST."""
        script = ("import os\n"
                  "for i in range(50):\n"
                  "    try: os.close(os.open(f'made/{i}', os.O_CREAT | os.O_EXCL | os.O_WRONLY)); print('ok')\n"
                  "    except OSError as e: print(e.errno)\n")
        os.mkdir(os.path.join(self.project, "made"))
        self.own(os.path.join(self.project, "made"))
        on, off = self.both_ways("python3", "-c", script, args=("--rule", "deny write made"))
        self.assertEqual({"13"}, set(on.out.split()), on)

    def test_what_opens_nothing_is_not_told(self):
        """O_PATH: no right is needed; what fails there fails by the file permissions alone."""
        self.write("project/shut/in", "x")
        os.chmod(os.path.join(self.project, "shut"), 0)
        script = ("import os\n"
                  "for i in range(50):\n"
                  "    os.close(os.open('good', os.O_RDONLY))\n"
                  "    try: os.close(os.open('shut/in', os.O_PATH))\n"
                  "    except OSError as e: print(e.errno)\n")
        on, off = self.both_ways("python3", "-c", script)
        self.assertEqual([] if self.uid == 0 else ["13"] * 50, on.out.split())
        self.assertEqual([], on.report["denials"])

    def test_what_stops(self):
        """A refused open costs one stop, one that is done in its place two."""
        opener, times = self.build(), 300
        for path, rule, opens, most in ((self.secret, "deny r outside", 13, 1.1),
                                        (self.outside, f"allow list {self.outside} exact", 0, 2.1)):
            on, off = self.both_ways(opener, str(times), path, args=("--rule", rule))
            self.assertIn(f"{path} {opens}", on.out)
            self.assertLess(self.stops(on), most * 2 * times + 100, on)

    def test_its_map_of_memory_is_as_ever(self):
        """Nothing is mapped, split or made writable: with addresses that aren't random it is the same text."""
        on, off = self.both_ways("setarch", "-R", "sh", "-c", 'cat "$@" >/dev/null; cat "$@" >/dev/null; '
                                 'exec cat "$@" /proc/self/maps', "sh", *[self.good] * 20)
        self.assertRegex(on.out, r"r-xp .*/libc\.so\.6")
        self.assertGreater(on.report["engine"]["patched"], 0)
        self.assertLess(self.stops(on), self.stops(off) / 2)

    def test_programs(self):
        self.write("project/a.c", "#include <stdio.h>\nint main(void) { puts(\"hi\"); }\n")
        for command in (["grep", "-rl", "ZZZ", "/usr/include/linux"],
                        ["sh", "-c", "gcc -c a.c && gcc a.o -o a && ./a; cat ../outside/secret"],
                        ["python3", "-c", "import json, http.client, email; open('../outside/secret')"],
                        ["find", "/usr/share/doc", "-name", "zz"]):
            on, off = self.both_ways(*command)
            self.assertLess(4 * self.stops(on), self.stops(off), command)

    def test_a_process_that_is_born_and_runs_a_program(self):
        """Its creator's word, its own first stop, the exec before and behind, its end: docs/fast-path.md."""
        spawner = self.build(name="spawner", text=SPAWNER)
        for how in ("fork", "vfork", "spawn", "clone", "ignored"):
            on, off = self.both_ways(spawner, how, "100")
            self.assertEqual("100 of 100\n", on.out)
            self.assertLessEqual(self.stops(on), 5 * 100 + 50, how)
            self.assertGreaterEqual(self.stops(off), 8 * 100, how)

    def test_a_filter_of_its_own_finds_no_marks(self):
        """After it has installed a filter, a program's calls are what it wrote, bit for bit."""
        program = fixture("fast_filter")
        on, off = self.both_ways(program, self.good, args=("-x", program))
        self.assertEqual("before 0\ntext as before\nafter 0\n", on.out)


OBJECT = """
#include <fcntl.h>
%s
long opens(const char *file)
{
	long result;
	__asm__ volatile("movl $257, %%%%eax\\n\\tsyscall" : "=a"(result)
			 : "D"((long)AT_FDCWD), "S"(file), "d"((long)O_RDONLY) : "rcx", "r11", "memory");
	return result;
}
"""


@both_users
class Ways(FastCase):
    """tests/fixtures/fast_ways.c."""

    def way(self, name, *more, args=(), most=None):
        program = fixture("fast_ways")
        on, off = self.both_ways(program, name, self.good, self.secret, *more, args=("-x", program, *args))
        self.assertStatus(on)
        if most is not None:
            self.assertLess(self.stops(on), most, on)
        return on

    def test_signals_at_every_moment(self):
        done = self.way("signals")
        self.assertEqual("wrong 0, signals many, seen in a stub 0\n", done.out)
        self.assertEqual(50, done.denials(self.secret)[0]["count"])

    def test_threads_that_start_after_the_change(self):
        done = self.way("threads", most=1000)
        self.assertEqual("wrong 0\n", done.out)
        self.assertEqual(80, done.denials(self.secret)[0]["count"])

    def test_threads_that_are_there_before_the_first_open(self):
        """What is mapped is changed before the first of them runs."""
        self.assertEqual("wrong 0\n", self.way("late", most=1000).out)

    def test_exec_by_a_thread(self):
        self.assertEqual("wrong 0\n", self.way("exec", most=1000).out)

    def test_children_of_every_kind(self):
        done = self.way("children")
        self.assertEqual("fork 0\nvfork 13\nclone 0\nparent's 1\nafter 0\n", done.out)
        self.assertEqual(13, done.denials(self.secret)[0]["count"])

    def test_a_filter_for_all_threads_finds_no_marks(self):
        self.assertEqual("wrong 0\nfilter 0\nwrong 0\n", self.way("tsync").out)

    def test_what_is_in_an_upper_half_already(self):
        """The mark becomes another. The call is made once all the same."""
        os.mkdir(os.path.join(self.project, "made"))
        self.own(os.path.join(self.project, "made"))
        on = self.way("garbage", "made", args=("--rule", "deny write made"))
        self.assertEqual("wrong 0, refused 50\n", on.out)

    def test_text_that_the_program_writes_over(self):
        self.assertEqual("wrong 0\n", self.way("rewrite").out)

    def test_a_library_that_the_program_maps_over(self):
        self.assertEqual("wrong 0\n", self.way("unmapped").out)

    def object(self, name, more=""):
        source = self.write(f"home/{name}.c", OBJECT % more)
        path = os.path.join(self.project, f"{name}.so")
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", path, source], check=True)
        self.own(path)
        return path

    def test_one_thread_at_a_time(self):
        """What is mapped is looked at before the first, and again once calls have come from elsewhere."""
        self.assertEqual("wrong 0\n", self.way("single", self.object("late"), most=400).out)

    def test_objects_that_come_and_go(self):
        objects = [self.object("0"), self.object("1", "int pad(int x) { return x * 3; } static volatile int y;")]
        done = self.way("dl", *objects, most=2500)
        self.assertEqual("wrong 0\n", done.out)
        self.assertEqual(800, done.denials(self.secret)[0]["count"])

    def test_an_open_that_blocks(self):
        fifo = os.path.join(self.project, "fifo")
        os.mkfifo(fifo)
        self.own(fifo)
        program = fixture("fast_ways")
        script = '"$@" & p=$!; while kill -CONT $p 2>/dev/null; do sleep 0.05; done; wait $p'
        on, off = self.both_ways("sh", "-c", script, "sh", program, "fifo", self.good, self.secret, fifo,
                                 args=("-x", program))
        self.assertEqual("open Interrupted system call\nopen done\nopen done\ncleaned up\n"
                         "cancelled 1, handled 2, in a stub 0\n", on.out)

    def test_marks_that_the_program_makes_itself(self):
        """It can read them in its own stub. It can hide its denial with one, and make some up."""
        program = fixture("fast_ways")
        done = self.run_report("--on-denial", "report", "-x", program, "--", program, "lies", self.good, self.secret)
        self.assertStatus(done)
        self.assertEqual("pass -13\nafter 0\n", done.out, done)
        self.assertIn("marks 1\n", done.err)
        self.assertEqual({self.secret}, {d["path"] for d in done.report["denials"]} - {self.good}, done)

    def test_a_storm_of_refusals(self):
        done = self.way("storm", most=10000 + 500)
        self.assertEqual("wrong 0\n", done.out)
        self.assertEqual(10000, done.denials(self.secret)[0]["count"])

    def test_granted_in_place(self):
        """Descriptor and registers are as if it had been allowed, and it stays fast."""
        with open(self.secret, "w") as f:
            f.write("s")
        program = fixture("fast_ways")
        for lifetime, asked in (("once", 1), ("session", 1)):
            done = self.hold("-x", program, "--", program, "granted", self.good, self.secret,
                                answer=run_help.allow(lifetime))
            self.assertStatus(done)
            self.assertEqual("wrong 0, lost 0\n", done.out)
            self.assertEqual(asked, len(done.asked))
            self.assertLess(self.stops(done), 300, done)

    def test_refused_where_it_is_asked(self):
        program = fixture("fast_ways")
        done = self.hold("-x", program, "--", program, "storm", self.good, self.secret,
                            answer=run_help.deny)
        self.assertEqual("wrong 0\n", done.out)
        self.assertEqual(1, len(done.asked))
        self.assertEqual(10000, done.denials(self.secret)[0]["count"])

    def test_what_is_made_while_somebody_is_asked(self):
        """Creations are seen by the run that may have to list them; a refused one is told once."""
        made = [os.path.join(self.project, "made"), os.path.join(self.outside, "made")]
        for path in made:
            os.mkdir(path)
            self.own(path)
        program = fixture("fast_ways")
        done = self.hold("-x", program, "--", program, "made", self.good, self.secret, *made,
                            answer=run_help.deny)
        self.assertEqual("wrong 0\n", done.out, done)
        self.assertEqual([os.path.join(made[1], str(i)) for i in (9, 19, 29, 39)],
                         [d["path"] for d in done.report["denials"]], done)
        self.assertEqual([1] * 4, [d["count"] for d in done.report["denials"]])


if __name__ == "__main__":
    run_help.main()
