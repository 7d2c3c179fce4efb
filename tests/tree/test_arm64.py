#!/usr/bin/env python3
"""What ./dev test --arch arm64 stands on, as far as it can be looked at without an emulated machine."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(os.environ.get("SOURCE_DIR", pathlib.Path(__file__).parents[2]))
HERE = ROOT / "tests/arm64"


def test_names():
    """As tests/CMakeLists.txt makes them."""
    names = [f"unit_{f.parent.name}_{f.stem}" for f in ROOT.glob("tests/unit/*/test_*.c")]
    names += [f"live_live_{f.stem}" for f in ROOT.glob("tests/live/test_*.c")]
    return names + [f"live_{f.stem}" for f in ROOT.glob("tests/live/test_*.py")]


class Arm64(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.dir = pathlib.Path(place.name)

    def script(self, name, *args, **env):
        p = subprocess.run([HERE / name, *args], env=dict(os.environ, TMPDIR=str(self.dir), **env), text=True,
                           stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=False)
        return p.returncode, p.stdout + p.stderr

    def test_every_line_of_the_list_names_tests(self):
        lines = [line for line in (HERE / "tests").read_text().splitlines() if not line.startswith("#")]
        self.assertGreater(len(lines), 5)
        for line in lines:
            self.assertTrue(any(re.fullmatch(line, name) for name in test_names()), line)

    def test_every_live_test_is_passed_or_left_out_with_a_reason(self):
        text = (HERE / "tests").read_text()
        passed = [line for line in text.splitlines() if not line.startswith("#")]
        left_out = re.findall(r"(?m)^# not (\S+): \S", text)
        for line in left_out:
            self.assertTrue(any(re.fullmatch(line, name) for name in test_names()), line)
        for name in test_names():
            if name.startswith("live_"):
                told = [line for line in passed + left_out if re.fullmatch(line, name)]
                self.assertEqual(1, len(told), f"{name}: {told}")

    def test_without_a_machine_it_is_skipped(self):
        status, said = self.script("guest.sh", str(self.dir), str(self.dir))
        self.assertEqual(77, status, said)
        self.assertIn("skipped: ", said)

    def test_without_a_mirror_it_is_skipped(self):
        status, said = self.script("fetch.sh", str(self.dir / "build/debian"), DEBIAN_MIRROR=f"file:{self.dir}/none")
        self.assertEqual(77, status, said)
        self.assertIn("skipped: ", said)

    def test_what_the_guest_tells(self):
        def test(name, program, **env):
            return {"name": name, "command": ["/usr/bin/python3", str(self.dir / program)], "properties": [
                {"name": "WORKING_DIRECTORY", "value": str(self.dir)},
                {"name": "ENVIRONMENT", "value": [f"{k}={v}" for k, v in env.items()]}]}
        (self.dir / "good").write_text("import os, sys\nsys.exit(os.environ['WORD'] != 'a=b')")
        (self.dir / "bad").write_text("print('why')\nraise SystemExit(1)")
        (self.dir / "hangs").write_text("import time\nprint('begun', flush=True)\ntime.sleep(100)")
        listed = {"tests": [test("good", "good", WORD="a=b"), test("bad", "bad"), test("hangs", "hangs")],
                  "limit": 2, "tail": 1000, "words": [], "verbose": False}
        (self.dir / "list").write_text(json.dumps(listed))
        p = subprocess.run([sys.executable, HERE / "run_tests.py", self.dir / "list"], text=True, timeout=60,
                           stdin=subprocess.DEVNULL, capture_output=True, check=True)
        told = [line.split()[:3] for line in p.stdout.splitlines() if line.startswith("arm64: ")][1:]
        self.assertEqual([["arm64:", "ok", "good"], ["arm64:", "FAILED", "bad"], ["arm64:", "FAILED", "hangs"],
                          ["arm64:", "end", "3"]], told)
        self.assertIn("why\n", p.stdout)
        self.assertIn("begun\n\nits time was up\n", p.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
