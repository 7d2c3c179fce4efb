"""Libraries that few commands need are opened by who needs them, and by nobody else."""

import json
import os
import pathlib
import pty
import select
import subprocess
import tempfile
import time
import unittest

WARDER = os.environ["WARDER"]
UNWIND = f"libunwind-{os.uname().machine}.so.8"
EDIT = "libedit.so.2"
ZSTD = "libzstd.so.1"
MD4C = "libmd4c.so.0"
# Debian 12's, and the next.
ZYDIS = ("libZydis.so.4.0", "libZydis.so.4.1")


def environment(home, **more):
    """A home of its own, and nobody's account."""
    return {"PATH": os.environ["PATH"], "HOME": home, **more}


def run(*words, **more):
    with tempfile.TemporaryDirectory() as home:
        return subprocess.run([WARDER, *words], env=environment(home, **more), cwd=home,
                              capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)


def broken(folder, name):
    """What the linker finds first, and is no library."""
    pathlib.Path(folder, name).touch()
    return {"LD_LIBRARY_PATH": folder}


class Libraries(unittest.TestCase):
    def setUp(self):
        made = tempfile.TemporaryDirectory()
        self.addCleanup(made.cleanup)
        self.folder = made.name

    def test_the_program_starts_without(self):
        listed = run(LD_TRACE_LOADED_OBJECTS="1").stdout
        self.assertIn("libc.so", listed)
        for name in ("libcurl", "libedit", "libunwind", "liblzma", "libbsd", "libtinfo", "libzstd",
                     "libZydis", "libmd4c"):
            self.assertNotIn(name, listed)

    def test_a_run_minds_none(self):
        for name in ("libcurl.so.4", EDIT, UNWIND, ZSTD, MD4C, *ZYDIS):
            broken(self.folder, name)
        ran = run("run", "--on-denial", "report", "-q", "--", "true", LD_LIBRARY_PATH=self.folder)
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))

    def test_without_libcurl_the_agent_says_so(self):
        asked = run("agent", "--endpoint", "http://127.0.0.1:1", "-p", "hello",
                    **broken(self.folder, "libcurl.so.4"))
        self.assertNotEqual(asked.returncode, 0)
        self.assertIn("libcurl is needed to reach a model", asked.stderr)

    def test_without_zydis_each_refusal_is_told_all_the_same(self):
        """Calls that need a decoded function take their two stops."""
        for name in ZYDIS:
            broken(self.folder, name)
        secret = pathlib.Path(self.folder, "secret")
        secret.touch()
        told = []
        for env in {}, {"LD_LIBRARY_PATH": self.folder}:
            ran = run("run", "--on-denial", "report", "-q", "--report", "-", "--", "sh", "-c",
                      f"for i in 1 2 3 4 5 6 7 8 9; do cat {secret} /etc/passwd; done >/dev/null 2>&1", **env)
            report = json.loads(ran.stdout.splitlines()[-1])
            told.append([(d["path"], d["call"], d["count"]) for d in report["denials"]])
        self.assertEqual(told[0], told[1])
        self.assertEqual(told[0], [(str(secret), "openat", 9)])

    def test_without_libzstd_a_compressed_trace_says_so(self):
        trace = pathlib.Path(self.folder, "trace.zst")
        ran = run("record", "-o", str(trace), "--", "true")
        self.assertEqual((ran.returncode, trace.exists()), (0, True), ran.stderr)
        env = broken(self.folder, ZSTD)
        for words in (("record", "-o", str(trace) + "2.zst", "--", "true"), ("replay", str(trace))):
            ran = run(*words, **env)
            self.assertEqual(ran.returncode, 125)
            self.assertIn("libzstd is needed for a compressed trace", ran.stderr)
        self.assertEqual(run("replay", str(trace)).returncode, 0)

    def stack_end(self, **env):
        secret = pathlib.Path(self.folder, "secret")
        secret.touch()
        ran = run("run", "--on-denial", "report", "-q", "--stacks", "--report", "-", "--", "cat",
                  str(secret), **env)
        (denial,) = json.loads(ran.stdout.splitlines()[-1])["denials"]
        self.assertGreaterEqual(len(denial["stack"]), 1)
        return denial["stack_end"]

    def test_without_libunwind_a_stack_is_its_first_place(self):
        self.assertEqual(self.stack_end(**broken(self.folder, UNWIND)), "no-libunwind")
        self.assertEqual(self.stack_end(), "complete")

    def test_a_command_puts_no_library_into_its_supervisor(self):
        """Where the linker looks may be the command's: all is loaded before it runs."""
        with tempfile.TemporaryDirectory() as home:
            there, denied = pathlib.Path(home, UNWIND), pathlib.Path(self.folder, "secret")
            denied.touch()
            ran = subprocess.run(
                [WARDER, "run", "--on-denial", "report", "-q", "--stacks", "--report", "-", "--",
                 "sh", "-c", f"touch {there}; cat {denied}"],
                env=environment(self.folder, LD_LIBRARY_PATH=home), cwd=home, capture_output=True,
                text=True, stdin=subprocess.DEVNULL, timeout=60)
            self.assertTrue(there.exists())
        (denial,) = json.loads(ran.stdout.splitlines()[-1])["denials"]
        self.assertEqual(denial["stack_end"], "complete")

    def test_nor_one_that_decodes_code(self):
        with tempfile.TemporaryDirectory() as home:
            ran = subprocess.Popen(
                [WARDER, "run", "--on-denial", "report", "-q", "--project", home, "--", "sh", "-c",
                 "echo up; cat"], env=environment(self.folder, LD_LIBRARY_PATH=home), cwd=home,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            self.addCleanup(ran.wait)
            self.addCleanup(ran.kill)
            self.assertEqual(ran.stdout.readline(), "up\n")
            maps = pathlib.Path(f"/proc/{ran.pid}/maps").read_text()
            ran.communicate(timeout=60)
        self.assertIn("libunwind", maps)
        if os.uname().machine == "x86_64":
            self.assertIn("libZydis", maps)

    def test_nor_one_into_the_agent(self):
        """The demonstration runs commands, and /login would need libcurl: that is there already."""
        with tempfile.TemporaryDirectory() as home:
            agent = subprocess.Popen(
                [WARDER, "agent", "--project", home, "--provider", "script"], cwd=home, stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True,
                env=environment(home, LD_LIBRARY_PATH=home))
            self.addCleanup(agent.wait)
            self.addCleanup(agent.kill)
            maps, until = "", time.monotonic() + 60
            wanted = ("libcurl.so.4", MD4C)
            while (not all(name in maps for name in wanted) and agent.poll() is None
                   and time.monotonic() < until):
                maps = pathlib.Path(f"/proc/{agent.pid}/maps").read_text()
            self.assertIn("libcurl.so.4", maps)
            self.assertIn(MD4C, maps)
            agent.stdin.close()
            agent.wait(timeout=60)  # what it writes at its end lies in its home

    def test_without_libedit_lines_are_read_plainly(self):
        with tempfile.TemporaryDirectory() as home:
            master, slave = pty.openpty()
            agent = subprocess.Popen(
                [WARDER, "agent", "--project", home], stdin=slave, stdout=slave, stderr=slave,
                cwd=home, start_new_session=True,
                env=environment(home, TERM="xterm", **broken(self.folder, EDIT)))
            os.close(slave)
            os.write(master, b"/help\n/quit\n")
            said, until = b"", time.monotonic() + 60
            while time.monotonic() < until and agent.poll() is None:
                if select.select([master], [], [], 0.2)[0]:
                    try:
                        said += os.read(master, 65536)
                    except OSError:
                        break
            agent.kill()
            agent.wait()
            os.close(master)
        self.assertIn(b"lines can't be edited; libedit is needed", said)
        self.assertIn(b"/help", said)


if __name__ == "__main__":
    unittest.main()
