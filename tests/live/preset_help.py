"""
What the tests of the presets share: a tool's first run, in a home directory that holds nothing. It
may ask nothing and be refused nothing; questions are answered with no, so that none is missed.
"""

import os

from run_help import RunCase, deny

SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"


class FirstRun(RunCase):
    preset = None  # of the class

    def setUp(self):
        super().setUp()
        # As after a login: XDG's variables are seldom set.
        self.env = {"PATH": SYSTEM_PATH, "HOME": self.home, "LC_ALL": "C.UTF-8", "TMPDIR": self.tmp,
                    "XDG_STATE_HOME": self.env["XDG_STATE_HOME"], "TERM": "xterm"}

    def first_run(self, script, *options, env=None, cwd=None, timeout=60):
        """The shell script with the class's preset: it works, unasked and unrefused."""
        preset = ["--preset", self.preset] if self.preset else []
        done = self.hold(*preset, *options, "--", "bash", "-euc", script, answer=deny,
                         env={**self.env, **(env or {})}, cwd=cwd or self.project, timeout=timeout)
        self.assertNothingAsked(done)
        self.assertEqual([], self.refused(done), done)
        self.assertStatus(done)
        self.assertQuiet(done)
        return done

    def refused(self, done):
        """What the sandbox refused; a preset's own deny is meant, and a program goes on."""
        return [d for d in done.report["denials"]
                if d["verdict"] == "sandbox" and d["by"] != "policy"]

    def without(self, script, *options, env=None, timeout=60):
        """The same with the default presets alone and everybody answering no: what was asked."""
        done = self.hold(*options, "--", "bash", "-uc", script, answer=deny,
                         env={**self.env, **(env or {})}, timeout=timeout)
        return done.asked

    def make(self, files, at="project"):
        for name, text in files.items():
            self.write(os.path.join(at, name), text, 0o755 if text.startswith("#!") else 0o644)
