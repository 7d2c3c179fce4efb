"""libwarder as others use it: installed, found by pkg-config, asking by a callback."""

import os
import shutil
import subprocess
import tempfile
import unittest

from run_help import FIXTURES, TIMEOUT, RunCase, both_users, main, needs

SOURCE = os.environ["SOURCE_DIR"]
BUILD = os.path.realpath(os.path.join(FIXTURES, "../.."))

CALLS = r"""
#define _GNU_SOURCE
#include <warder.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned asked;

static enum warder_answer on_question(void *arg, const struct warder_question *q, unsigned *scope)
{
	cpu_set_t cpus;
	asked++;
	if (getenv("CPUS") && !sched_getaffinity(0, sizeof(cpus), &cpus))
		printf("processors %d\n", CPU_COUNT(&cpus));
	printf("ask %s %s %s %s exists=%d scopes=%zu %.22s\n", q->call, q->access, strrchr(q->path, '/'),
	       q->argv[0], q->exists, q->scopes_len, q->json);
	fflush(stdout);
	*scope = getenv("SCOPE") ? (unsigned)atoi(getenv("SCOPE")) : 0;
	return (enum warder_answer)atoi(arg);
}

int main(int argc, char **argv)
{
	(void)argc;
	struct warder_options o = {.ask = strcmp(argv[1], "none") ? on_question : NULL, .ask_arg = argv[1],
				   .session = getenv("SESSION")};
	struct warder_result r;
	int err = warder_run(&o, argv + 2, &r);
	printf("asked %u status %d error %d %s\n", asked, r.status, err, r.error);
	if (r.report && getenv("REPORT"))
		puts(r.report);
	warder_result_release(&r);
	return 0;
}
"""


def sanitized():
    with open(os.path.join(BUILD, "CMakeCache.txt"), encoding="utf-8") as f:
        return "WARDER_SANITIZE:BOOL=ON" in f.read()


def setUpModule():
    """Installed once; both programs are built against that."""
    global place
    place = tempfile.mkdtemp(prefix="warder-library-")
    unittest.addModuleCleanup(shutil.rmtree, place)
    os.chmod(place, 0o755)
    prefix = os.path.join(place, "usr")
    subprocess.run(["cmake", "--install", BUILD, "--prefix", prefix], check=True, timeout=120,
                   stdout=subprocess.DEVNULL)
    with open(os.path.join(place, "calls.c"), "w", encoding="utf-8") as f:
        f.write(CALLS)
    lib = [d for d, _, files in os.walk(prefix) if "warder.pc" in files]
    flags = subprocess.run(["pkg-config", f"--define-variable=prefix={prefix}", "--static", "--cflags",
                            "--libs", "warder"], env={**os.environ, "PKG_CONFIG_PATH": lib[0]},
                           check=True, capture_output=True, text=True, timeout=60).stdout.split()
    if sanitized():
        flags.append("-fsanitize=address,undefined")
    for source in (os.path.join(SOURCE, "docs/examples/ask.c"), os.path.join(place, "calls.c")):
        name = os.path.splitext(os.path.basename(source))[0]
        subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", source, *flags, "-o",
                        os.path.join(place, name)], check=True, timeout=120)


NO, NEVER, ONCE, SESSION, ALWAYS = map(str, range(5))


@needs("cc", "pkg-config", "cmake")
@both_users
class Library(RunCase):
    def setUp(self):
        super().setUp()
        self.secret = self.write("outside/secret", "found\n")

    def calls(self, answer, *command, **env):
        done = self.native(os.path.join(place, "calls"), answer, *command, env=dict(self.env, **env))
        self.assertStatus(done)
        return done.out

    def test_yes_in_place(self):
        out = self.calls(ONCE, "cat", self.secret)
        self.assertIn("ask openat read /secret cat exists=1 scopes=", out)
        self.assertIn('{"event":"ask","id":1,', out)
        self.assertIn("found\n", out)
        self.assertIn("asked 1 status 0 error 0 \n", out)

    def test_no(self):
        out = self.calls(NO, "sh", "-c", f"cat {self.secret}; cat {self.secret}; exit 3")
        self.assertIn("asked 1 status 3", out)
        self.assertNotIn("found", out)

    def test_once_is_asked_of_each_process_and_session_is_not(self):
        twice = ("sh", "-c", f"cat {self.secret}; cat {self.secret}")
        self.assertIn("asked 2 status 0", self.calls(ONCE, *twice))
        self.assertIn("asked 1 status 0", self.calls(SESSION, *twice))

    def test_the_callback_has_all_processors(self):
        refused = "while :; do cat /etc/shadow; done 2>/dev/null & "  # on and on, and nobody is asked
        out = self.calls(ONCE, "sh", "-c", f"{refused} for i in 1 2 3 4 5 6 7 8 9; do cat {self.secret}; done; kill $!",
                         CPUS="1")
        self.assertEqual(out.count(f"processors {len(os.sched_getaffinity(0))}\n"), 9, out)

    def test_what_is_not_offered_is_no(self):
        for answer, scope in ((ONCE, "17"), (ALWAYS, "0"), ("99", "0")):
            out = self.calls(answer, "cat", self.secret, SCOPE=scope)
            self.assertIn("asked 1 status 1", out)

    def test_nobody_asks(self):
        self.assertIn("asked 0 status 1", self.calls("none", "cat", self.secret))

    def test_a_signal_ends_it(self):
        self.assertIn("status -9 ", self.calls("none", "sh", "-c", "kill -9 $$"))

    def test_nothing_can_be_run(self):
        out = self.calls("none", "no-such-command")
        self.assertIn("status 127 error 0 command not found", out)
        out = self.native(os.path.join(place, "calls"), "none")
        self.assertIn("error -22", out.out)

    def test_a_named_session(self):
        self.calls(SESSION, "cat", self.secret, SESSION="n")
        self.assertIn("asked 0 status 0", self.calls(NO, "cat", self.secret, SESSION="n"))

    def test_the_example(self):
        p = self.start([os.path.join(place, "ask"), "cat", self.secret], stdin=subprocess.PIPE,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        out, err = p.communicate(b"y\n", TIMEOUT)
        self.assertEqual((out, p.returncode), (b"found\n", 0), err)
        self.assertIn(b"cat wants to read", err)
        p = self.start([os.path.join(place, "ask"), "cat", self.secret], stdin=subprocess.PIPE,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        out, err = p.communicate(b"n\n", TIMEOUT)
        self.assertEqual((out, p.returncode), (b"", 1), err)
        self.assertIn(f"refused {self.secret}: read (sandbox)".encode(), err)


if __name__ == "__main__":
    main()
