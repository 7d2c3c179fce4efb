#!/usr/bin/env python3
"""warder doctor in a terminal: what is too long for a line goes on below itself, between words."""

import os
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(__file__))
from tmux_help import WARDER, Terminal  # noqa: E402  (the helper lies beside this file)

START = re.compile(r"([a-z0-9]+ +(ok|degraded|missing) +|                      (-> )?)\S")
NARROW = re.compile(r"[a-z0-9]+ +(ok|degraded|missing)$|  (-> |   )?\S")


class Screens(unittest.TestCase):
    def test_nothing_is_wrapped_by_the_terminal(self):
        for width, start in ((40, NARROW), (80, START), (120, START)):
            with self.subTest(width=width), Terminal(width=width, height=60 if width > 40 else 150) as t:
                shown = t.run("clear; warder doctor")
                lines = [line for line in shown.split("\nThis machine")[0].splitlines() if line]
                self.assertGreater(len(lines), 10)
                for line in lines:
                    self.assertRegex(line, start)
                    self.assertLess(len(line), width)

    def test_colours_where_the_terminal_has_them(self):
        with Terminal(height=60) as t:
            for setting, coloured in (("TERM=screen", True), ("TERM=dumb", False), ("NO_COLOR=1", False)):
                t.run(f"clear; {setting} script -qec 'warder doctor' raw >shown")
                with open(os.path.join(t.project, "raw"), encoding="utf-8") as f:
                    self.assertEqual(coloured, "\x1b" in f.read(), setting)

    def test_a_pipe_gets_a_line_a_finding(self):
        done = subprocess.run([WARDER, "doctor"], capture_output=True, text=True, timeout=60)
        for line in done.stdout.split("\n\nThis machine")[0].splitlines():
            self.assertRegex(line, r"^([a-z0-9]+ +(ok|degraded|missing) |                      -> )")


if __name__ == "__main__":
    unittest.main()
