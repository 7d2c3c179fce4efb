"""libcurl is opened by who makes a request, and by nobody else."""

import os
import pathlib
import subprocess
import tempfile
import unittest

WARDER = os.environ["WARDER"]


def run(*words, **more):
    """The program with a home of its own and without anybody's account."""
    with tempfile.TemporaryDirectory() as home:
        env = {"PATH": os.environ["PATH"], "HOME": home, **more}
        return subprocess.run([WARDER, *words], env=env, cwd=home, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=60)


class Libcurl(unittest.TestCase):
    def test_the_program_starts_without(self):
        listed = run(LD_TRACE_LOADED_OBJECTS="1").stdout
        self.assertIn("libc.so", listed)
        self.assertNotIn("libcurl", listed)

    def test_where_it_is_missing_the_agent_says_so_and_a_run_does_not_mind(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "libcurl.so.4").touch()  # found first, and no library
            ran = run("run", "--on-denial", "report", "-q", "--", "true", LD_LIBRARY_PATH=folder)
            self.assertEqual((ran.returncode, ran.stderr), (0, ""))
            asked = run("agent", "--endpoint", "http://127.0.0.1:1", "-p", "hello",
                        LD_LIBRARY_PATH=folder)
        self.assertNotEqual(asked.returncode, 0)
        self.assertIn("libcurl is needed to reach a model", asked.stderr)


if __name__ == "__main__":
    unittest.main()
