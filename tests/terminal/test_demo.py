"""The demo shows what it promises (it checks itself), in a real pseudo-terminal."""

import os
import subprocess
import unittest

DEMO = os.path.join(os.environ["SOURCE_DIR"], "demo", "demo.py")


class Demo(unittest.TestCase):
    def test_demo(self):
        done = subprocess.run(["python3", DEMO, os.environ["WARDER"]], capture_output=True, text=True,
                              timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for promised in ("asks to read", "verdict  sandbox", "program  /usr/bin/cat", "runs     1"):
            self.assertIn(promised, done.stdout)


if __name__ == "__main__":
    unittest.main()
