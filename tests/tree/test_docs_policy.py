#!/usr/bin/env python3
"""The examples in docs/policy.md are read by the program as they stand there."""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(os.environ["SOURCE_DIR"])
WARDER = os.path.realpath(os.environ["WARDER"])


class Examples(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = folder.name
        self.env = {"PATH": "/usr/bin:/bin", "HOME": self.dir, "XDG_CONFIG_HOME": self.dir + "/c",
                    "XDG_STATE_HOME": self.dir + "/s", "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "")}

    def warder(self, *words):
        return subprocess.run([WARDER, *words], cwd=self.dir, env=self.env, capture_output=True, text=True, timeout=30,
                              check=False)

    def test_every_block_is_a_policy(self):
        text = (ROOT / "docs/policy.md").read_text()
        blocks = re.findall(r"^```policy\n(.*?)^```", text, re.S | re.M)
        self.assertGreater(len(blocks), 3)
        for block in blocks:
            path = os.path.join(self.dir, "rules")
            pathlib.Path(path).write_text(block)
            done = self.warder("policy", "check", path)
            self.assertEqual(0, done.returncode, done.stdout + done.stderr)
            done = self.warder("policy", "merge", path)
            rules = [line for line in block.splitlines() if line.partition("#")[0].strip()]
            self.assertGreaterEqual(len(done.stdout.splitlines()) + 1, len(rules))

    def test_which_rule_decides(self):
        """What the text says of depth, kinds and effects."""
        rows = [
            ("allow r /s\ndeny r /s/a/b\n", "/s/a/b/c", "deny"),
            ("deny r /s/a\nallow r /s/a/b\n", "/s/a/b/c", "allow"),
            ("forbid /s\nallow r /s/a/b exact\n", "/s/a/b", "forbid"),
            ("deny r /s/a\nallow r /s/a exact\n", "/s/a", "allow"),
            ("deny r /s/a\nallow r /s/*\n", "/s/a", "deny"),
            ("allow r /s/a\nask r /s/a\n", "/s/a", "ask"),
            ("deny r /s/secret\nallow r /**/x.c\n", "/s/secret/x.c", "deny"),
            ("deny r /s/secret\nallow r /s/secret/x.?\n", "/s/secret/x.c", "allow"),
            ("", "/s/other", "ask"),
        ]
        for rules, path, effect in rows:
            file = os.path.join(self.dir, "rules")
            pathlib.Path(file).write_text(rules)
            done = self.warder("why", "--no-presets", "--policy", file, "--json", path, "read")
            self.assertIn(f'"effect":"{effect}"', done.stdout, (rules, path, done.stderr))


if __name__ == "__main__":
    unittest.main()
