"""What Landlock answers, case by case (tests/oracle/cases.txt): the running kernel and the model, both as written."""

import os
import pathlib
import subprocess
import tempfile
import unittest

CASES = os.environ["LANDLOCK_CASES"]
TABLE = pathlib.Path(os.environ["SOURCE_DIR"]) / "tests/oracle/cases.txt"
FINE, WRONG, FAILED, NOT_HERE = 0, 1, 3, 77


def run(table):
    return subprocess.run([CASES, table], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)


@unittest.skipIf(os.geteuid(), "the cases have mounts of their own")
class Cases(unittest.TestCase):
    def test_all_as_written(self):
        done = run(TABLE)
        if done.returncode == NOT_HERE:
            self.skipTest("no Landlock with refer here")
        self.assertEqual(done.returncode, FINE, done.stdout)
        print(done.stdout, end="")
        # Older kernels leave out the disconnected directories, and a machine may lack a filesystem.
        self.assertGreater(int(done.stdout.split()[0]), 90, done.stdout)

    def answer_of(self, *lines):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as table:
            table.write("case one\n" + "\n".join(lines) + "\n")
            table.flush()
            done = run(table.name)
        if done.returncode == NOT_HERE:
            self.skipTest("no Landlock with refer here")
        return done

    def test_what_is_written_wrong_is_said(self):
        for lines in (["r a/1 EACCES"], ["layer read", "r a/1 ok"], ["layer refer a refer", "mv a/1 d/2 ok"]):
            with self.subTest(lines=lines):
                done = self.answer_of(*lines)
                self.assertEqual(done.returncode, WRONG, done.stdout)
                self.assertIn("case one, line", done.stdout)

    def test_what_is_not_understood_is_no_success(self):
        for line in ("fly a/1 ok", "r a/1 perhaps", "r a/1", "layer wings", "do fly a/1", "do rm nowhere", "r @what ok"):
            with self.subTest(line=line):
                self.assertEqual(self.answer_of(line).returncode, FAILED)


if __name__ == "__main__":
    unittest.main()
