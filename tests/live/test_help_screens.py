#!/usr/bin/env python3
"""Every --help fits a terminal of 80 columns, and but for the list of all options one of 24 rows."""

import re
import subprocess
import unittest

from run_help import TIMEOUT, WARDER, main

LONG = ("run",)  # one row an option


def help_of(*words):
    done = subprocess.run([WARDER, *words, "--help"], capture_output=True, text=True, timeout=TIMEOUT)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout


class Screens(unittest.TestCase):
    def test_each_fits(self):
        first = help_of()
        names = set(re.findall(r"^  warder ([a-z]+)", first, re.M))
        self.assertGreater(len(names), 10)
        for name in ("", *sorted(names)):
            with self.subTest(name):
                lines = help_of(*name.split()).splitlines()
                self.assertEqual([], [line for line in lines if len(line) > 80])
                if name not in LONG:
                    self.assertLessEqual(len(lines), 24)


if __name__ == "__main__":
    main()
