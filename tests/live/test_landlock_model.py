"""The model against the running kernel: random trees (with a tmpfs, a bind mount and an overlay inside), random
layers of rules, random calls. Not one difference.

WARDER_TEST_SEED=N repeats a run, WARDER_TEST_VERDICTS=N asks for more verdicts.
"""

import os
import subprocess
import unittest

ORACLE = os.environ["ORACLE"]
SEED = os.environ.get("WARDER_TEST_SEED")
VERDICTS = os.environ.get("WARDER_TEST_VERDICTS", "6000")
NO_LANDLOCK = 77


class Model(unittest.TestCase):
    def agrees(self, *options):
        seed = ["--seed", SEED] if SEED else []
        done = subprocess.run([ORACLE, "--verdicts", VERDICTS, *seed, *options],
                              stderr=subprocess.PIPE, text=True, timeout=250)
        if done.returncode == NO_LANDLOCK:
            self.skipTest("no Landlock with refer here")
        print(done.stderr, end="")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_agrees_with_the_kernel(self):
        self.agrees()

    @unittest.skipIf(os.geteuid(), "we are one already")
    def test_agrees_with_the_kernel_as_an_ordinary_user(self):
        self.agrees("--user")


if __name__ == "__main__":
    unittest.main()
