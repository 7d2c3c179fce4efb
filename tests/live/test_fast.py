"""
The fast path: what is said and done is the same with and without it, and what succeeds stops no
more.
"""

import os
import shutil
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


@both_users
class Fast(run_help.RunCase):
    def setUp(self):
        super().setUp()
        self.env["PATH"] = "/usr/bin:/bin"
        self.good = self.write("project/good", "x")
        self.secret = self.write("outside/secret", "x")

    def both_ways(self, *command, args=()):
        done = {}
        for fast in ("on", "off"):
            done[fast] = self.run_report("--on-denial", "report", "--fast", fast, *args, "--", *command)
            self.assertEqual(fast == "on", done[fast].report["engine"]["fast"])
        on, off = done["on"], done["off"]
        self.assertEqual((off.out, off.err, off.status), (on.out, on.err, on.status))
        what = [[(d["path"], d["access"], d["verdict"], d["call"], d["errno"], d["count"], d["answer"])
                 for d in r.report["denials"]] for r in (on, off)]
        self.assertEqual(what[1], what[0], on)
        return on, off

    def stops(self, done):
        return done.report["engine"]["stops"]

    def build(self, *how, name="opener", compiler="cc"):
        source = self.write("home/opener.c", OPENER)
        program = os.path.join(self.project, name)
        built = subprocess.run([compiler, *how, "-o", program, source], capture_output=True, text=True)
        if built.returncode:
            self.skipTest(f"{compiler} {how} can't build: {built.stderr[:200]}")
        return self.own(program)

    def assertFast(self, program, times=60):
        on, off = self.both_ways(program, str(times), self.good, self.secret, self.good + ".not")
        self.assertIn(f"{self.secret} 13", on.out)
        self.assertEqual(2 * times, on.denials(self.secret)[0]["count"])
        # Two stops for each of the refused ones; of 800 that are not, a few.
        self.assertLess(self.stops(on), 2 * 2 * times + 200, on)
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

    def test_programs(self):
        self.write("project/a.c", "#include <stdio.h>\nint main(void) { puts(\"hi\"); }\n")
        for command in (["grep", "-rl", "ZZZ", "/usr/include/linux"],
                        ["sh", "-c", "gcc -c a.c && gcc a.o -o a && ./a; cat ../outside/secret"],
                        ["python3", "-c", "import json, http.client, email; open('../outside/secret')"],
                        ["find", "/usr/share/doc", "-name", "zz"]):
            on, off = self.both_ways(*command)
            self.assertLess(4 * self.stops(on), self.stops(off), command)

    def test_a_filter_of_its_own_finds_no_marks(self):
        """After it has installed a filter, a program's calls are what it wrote, bit for bit."""
        program = fixture("fast_filter")
        on, off = self.both_ways(program, self.good, args=("-x", program))
        self.assertEqual("before 0\ntext as before\nafter 0\n", on.out)


if __name__ == "__main__":
    run_help.main()
