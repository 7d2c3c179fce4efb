"""What lies where warder keeps its own files is not trusted to be what was put there.

Each of them is made by a real run, and then something else is in its place: a FIFO, which has no end; a symlink to what
is another's; a directory; a file of another user. Nothing waits for it, follows it or changes it.
"""

import glob
import json
import os
import pty
import select
import shutil
import stat
import time
import unittest

from run_help import NOBODY, SLOW, TIMEOUT, WARDER, RunCase, allow, both_users, main

VICTIM = "allow r /victims/own/words\n"
SCRIPT = json.dumps({"role": "assistant", "content": "said"}) + "\n"


@both_users
class OwnFiles(RunCase):
    def setUp(self):
        super().setUp()
        self.secret = self.write("outside/secret", "found\n")
        self.script = self.write("script.jsonl", SCRIPT)
        self.victim = os.path.join(self.dir, "victim")

    def make_session(self):
        self.assertStatus(self.hold("--session", "n", "--", "sh", "-c", 'cat "$1"; :', "sh", self.secret,
                                    answer=allow("session")))

    def make_all(self):
        """Runs that leave every file there is."""
        self.make_session()
        self.assertStatus(self.native(WARDER, "policy", "allow", "r", self.secret))
        self.assertStatus(self.native(WARDER, "policy", "--project", "deny", "r", self.secret + ".no"))
        self.assertStatus(self.agent())
        self.write("config/warder/copilot.json", json.dumps({"host": "github.com", "token": "ghu_x"}))
        self.write("state/warder/history", "_HiStOrY_V2_\nbefore\n")
        self.write("state/warder/tmpdirs/note", "")
        self.write("state/warder/trust.jsonl", "")

    def agent(self):
        return self.native(WARDER, "agent", "--provider", "script", "--script", self.script, "-p", "go")

    def repl(self):
        """A line at the prompt, as at a terminal."""
        master, slave = pty.openpty()
        process = self.start([WARDER, "agent", "--provider", "script", "--script", self.script],
                             env=dict(self.env, TERM="xterm"), stdin=slave, stdout=slave, stderr=slave)
        os.close(slave)
        seen, sent, end = b"", 0, time.monotonic() + TIMEOUT * SLOW
        steps = ((b"Enter:", b"1\r"), (b"warder> ", b"go\r"), (b"said", b""), (b"warder> ", b"/quit\r"))
        while time.monotonic() < end and process.poll() is None:
            try:
                more = os.read(master, 65536) if select.select([master], [], [], 0.2)[0] else b""
            except OSError:
                break
            seen += more
            if sent < len(steps) and steps[sent][0] in seen:
                seen = seen.partition(steps[sent][0])[2]
                os.write(master, steps[sent][1])
                sent += 1
        os.close(master)
        self.assertEqual(sent, len(steps), seen)
        process.wait(TIMEOUT * SLOW)

    def way(self, *argv):
        return lambda: self.native(WARDER, *argv, timeout=10)

    def ways(self):
        """What reads or adds to which file, from its directory on; `*` for what a run names by itself."""
        run = self.way("run", "--on-denial", "report", "-q", "--", "cat", self.secret + ".not")
        named = self.way("run", "--session", "n", "--on-denial", "report", "-q", "--", "cat", self.secret + ".not")
        shown, allowed = self.way("policy", "show", "--effective"), self.way("policy", "allow", "r", self.outside + "/m")
        account = self.way("agent", "-p", "go", "--provider", "copilot", "--endpoint", "http://127.0.0.1:1")
        saved = (run, shown, self.way("policy", "check"), allowed, self.way("policy", "forget", self.outside + "/m"),
                 self.way("policy", "export"))
        return {
            "state/warder/history": (self.repl,),
            "state/warder/trust.jsonl": (self.repl,),
            "state/warder/audit.jsonl": (run, shown),
            "state/warder/last-report.json": (run, self.way("why", "--last")),
            "state/warder/tmpdirs/note": (run,),
            "state/warder/named/n/*": (named, self.way("session", "list"), self.way("session", "end", "n")),
            "state/warder/sessions/*.jsonl": (self.way("agent", "--provider", "script", "--script", self.script,
                                                       "--resume", "-p", "more"),),
            "config/warder/policy": saved,
            "config/warder/projects/*.policy": saved,
            "config/warder/.lock": (allowed,),
            "config/warder/projects/.lock": (allowed,),
            "config/warder/copilot.json": (account, self.way("login", "--help"), self.way("logout")),
        }

    def plant(self, kind, path):
        if kind == "fifo":
            os.mkfifo(path)
        elif kind == "symlink":
            os.symlink(self.victim, path)
        elif kind == "directory":
            os.mkdir(path)
        else:
            shutil.copy(self.victim, path)
        if kind != "others":
            self.own(path)
        elif self.uid == os.getuid():
            os.chown(path, NOBODY, NOBODY)

    def is_others(self, path):
        return os.path.isfile(path) and os.lstat(path).st_uid != self.uid

    def remove_planted(self, path):
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        elif os.path.lexists(path):
            os.unlink(path)

    def check_way(self, kind, path, way):
        self.write("victim", VICTIM)
        self.plant(kind, path)
        done = way()
        self.assertEqual(self.read(self.victim), VICTIM, done)
        # Where a user keeps his policy is his affair, as long as it is his or root's: it is only read there.
        taken = path.endswith("policy") and (kind == "symlink" or kind == "others" and self.uid)
        if done and not taken:
            self.assertNotIn("/victims/own/words", done.out + done.err)
        for code in ("Too many levels", "Invalid argument") if done else ():
            self.assertNotIn(code, done.err)
        if self.is_others(path):
            self.assertEqual(self.read(path), VICTIM)

    def check(self, kind):
        self.make_all()
        kept = os.path.join(self.dir, "kept")
        for pattern, ways in self.ways().items():
            found = glob.glob(os.path.join(self.dir, pattern))
            self.assertTrue(found, pattern)
            for path in found:
                if not os.path.exists(path):  # its session was ended
                    self.make_session()
                os.rename(path, kept)
                for i, way in enumerate(ways):
                    if not os.path.isdir(os.path.dirname(path)):
                        break
                    with self.subTest(kind=kind, path=os.path.relpath(path, self.dir), way=i):
                        self.check_way(kind, path, way)
                    self.remove_planted(path)
                if os.path.isdir(os.path.dirname(path)):
                    os.rename(kept, path)

    def test_a_fifo_is_not_waited_for(self):
        self.check("fifo")

    def test_a_symlink_is_not_followed(self):
        self.check("symlink")

    def test_a_directory_is_no_file(self):
        self.check("directory")

    @unittest.skipIf(os.getuid(), "needs two users")
    def test_a_file_of_anothers_counts_for_nothing(self):
        self.check("others")

    def test_a_pipe_that_the_user_names_is_waited_for(self):
        done = self.native("bash", "-c", 'exec "$@" --policy <(sleep 0.3; echo allow r "$S") -- cat "$S"', "bash",
                           WARDER, "run", "--on-denial", "report", env=dict(self.env, S=self.secret))
        self.assertStatus(done)
        self.assertEqual(done.out, "found\n")


if __name__ == "__main__":
    main()
