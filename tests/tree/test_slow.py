#!/usr/bin/env python3
"""What ./dev test --slow compares, and what it leaves out."""

import os
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(os.environ.get("SOURCE_DIR", pathlib.Path(__file__).parents[2]))
sys.path.insert(0, str(ROOT / "tests/slow"))

import both  # noqa: E402
import told  # noqa: E402


def report(*denials, place="/tmp/a", grants=()):
    return {"status": {"exit": 0}, "runs": 1, "grants": list(grants), "engine": {"notes": [f"a note on {place}"]},
            "denials": [{"path": f"{place}/{name}", "count": count, "pid": id(name), "t_ms": id(place)}
                        for name, count in denials]}


class Told(unittest.TestCase):
    def differences(self, *reports, counts=True):
        """Between two tests that each read these reports, one in /tmp/a, one in /tmp/b."""
        with tempfile.TemporaryDirectory() as top:
            sides = [os.path.join(top, name) for name in ("one", "other")]
            for side, place, read in zip(sides, ("/tmp/a", "/tmp/b"), reports):
                os.mkdir(side)
                for r in read:
                    told.keep(side, "test", r, place, counts)
            return told.differences(*sides)

    def test_chance_is_none(self):
        a = report(("x", 1), ("/proc/12/mem", 2), ("tmp.SomeName", 1))
        b = report(("tmp.OtherName", 1), ("/proc/3/mem", 2), ("x", 1), place="/tmp/b")
        self.assertEqual([], self.differences([a], [b]))

    def test_each_thing_counts(self):
        a = report(("x", 1))
        for b in (report(place="/tmp/b"), report(("y", 1), place="/tmp/b"), report(("x", 2), place="/tmp/b"),
                  report(("x", 1), ("x", 1), place="/tmp/b"), report(("x", 1), place="/tmp/b", grants=[{"path": "/x"}]),
                  report(("x", 1), place="/tmp/c"), {**report(("x", 1), place="/tmp/b"), "status": {"exit": 1}}):
            self.assertTrue(self.differences([a], [b]), b)
        self.assertTrue(self.differences([a, a], [report(("x", 1), place="/tmp/b")]))
        self.assertTrue(self.differences([a], []))

    def test_without_counts(self):
        self.assertEqual([], self.differences([report(("x", 1))], [report(("x", 9), place="/tmp/b")], counts=False))

    def test_what_is_left_out_is_there(self):
        for name, reason in both.LEFT_OUT.items():
            self.assertTrue((ROOT / "tests" / name).exists(), name)
            self.assertTrue(reason)


if __name__ == "__main__":
    unittest.main()
