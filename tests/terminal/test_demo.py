"""The demo shows what it promises (it checks itself), in a real pseudo-terminal."""

import os
import subprocess
import unittest

FOLDER = os.path.join(os.environ["SOURCE_DIR"], "demo")


class Demo(unittest.TestCase):
    def run_demo(self, script, *programs):
        done = subprocess.run(["python3", os.path.join(FOLDER, script), *programs], capture_output=True, text=True,
                              timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertNotRegex(done.stdout, "[\x1b\r]", "it goes into a pipe")
        return done

    def test_copilot(self):
        done = self.run_demo("copilot.py", os.environ["WARDER"], os.environ["MOCK"])
        for promised in ("MOCK-1234", "asks to read", "project holds one file", "Signed out"):
            self.assertIn(promised, done.stdout)

    def test_demo(self):
        done = self.run_demo("demo.py", os.environ["WARDER"])
        for promised in ("asks to read", "verdict  sandbox", "program  /usr/bin/cat", "runs     1",
                         "hello from inside the wall\n", "outside\n"):
            self.assertIn(promised, done.stdout)


if __name__ == "__main__":
    unittest.main()
