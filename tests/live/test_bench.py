"""The benchmark itself, with tiny sizes: every way to watch leaves every workload as it is natively."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

ROOT = os.environ["SOURCE_DIR"]
BUILD = os.path.dirname(os.path.dirname(os.path.realpath(os.environ["WARDER"])))
BENCH = os.path.join(ROOT, "bench")
SVG = "{http://www.w3.org/2000/svg}"
TIMEOUT = 200

sys.path.insert(0, BENCH)

import measure  # noqa: E402
import plot  # noqa: E402
import workloads  # noqa: E402

ACTS = {"decide", "model", "compile", "import", "learn", "stop", "report", "brokered", "start-fast", "start-slow",
        "start-record", "replay-event", "replay-judge"}


def bench(*args):
    return subprocess.run([sys.executable, os.path.join(BENCH, "bench.py"), "--build", BUILD, *args],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT)


class Smoke(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory(prefix="warder-bench-test-") as out:
            cls.done = bench("--smoke", "--out", out)
            if os.path.exists(os.path.join(out, "results.json")):
                with open(os.path.join(out, "results.json")) as f:
                    cls.result = json.load(f)
                cls.svg = xml.etree.ElementTree.parse(os.path.join(out, "overhead.svg")).getroot()

    def setUp(self):
        self.assertEqual(self.done.returncode, 0, self.done.stdout + self.done.stderr)

    def ways(self):
        return [m["name"] for m in self.result["modes"] if "skipped" not in m]

    def test_every_way_gives_what_native_gives(self):
        self.assertLessEqual({"native", "fast", "hold", "slow"}, set(self.ways()))
        for w in self.result["workloads"]:
            for name, cell in w["cells"].items():
                self.assertNotIn("wrong", cell, (w["name"], name))

    def test_the_json_is_whole(self):
        there = {w["name"] for w in self.result["workloads"]}
        known = {w.name: w for w in workloads.table(workloads.SMOKE, "work")}
        self.assertEqual(there | set(self.result["skipped"]), set(known))
        self.assertFalse(there & set(self.result["skipped"]))
        for w in self.result["workloads"]:
            # Where somebody is asked, the storm of refusals would wait for the first answer.
            ways = [n for n in self.ways() if (n != "hold" or w["name"] != "denials")
                    and (n != "least" or known[w["name"]].attributes)]
            self.assertEqual(list(w["cells"]), ways, w["name"])
            for name, cell in w["cells"].items():
                self.assertEqual(len(cell["ms"]), 1, (w["name"], name))
                self.assertGreater(cell["ratio"], 0)
        self.assertLessEqual(ACTS, {m["name"] for m in self.result["micro"]})
        self.assertEqual(set(self.result["summary"]), set(self.ways()) - {"least"})
        self.assertTrue(self.result["machine"]["cpu"])

    def test_the_runs_own_account(self):
        cells = {w["name"]: w["cells"] for w in self.result["workloads"]}
        for way in ("fast", "slow"):
            self.assertEqual(cells["denials"][way]["refused"], workloads.SMOKE.storm)
            self.assertGreaterEqual(cells["grants"][way]["brokered"], workloads.SMOKE.storm)
            self.assertEqual(cells["grants"][way]["refused"], 0)

    def test_the_table_has_a_line_for_each(self):
        for w in self.result["workloads"]:
            self.assertIn(f"\n{w['title']}", self.done.stdout)
        for m in self.result["micro"]:
            self.assertIn(f"\n{m['name']} ", self.done.stdout)

    def test_of_one_round_no_spread_is_told_and_no_difference_is_negative(self):
        self.assertNotIn("±", self.done.stdout)
        self.assertNotRegex(self.done.stdout, r"-\d+\.\d+ µs")
        # Not the lines' width, which is the figures', too: the heads are the short names.
        heads = [line.split() for line in self.done.stdout.splitlines() if line.endswith("  stops")]
        self.assertEqual([[*self.ways(), "stops"]], heads)

    def test_the_plot_has_a_mark_for_each(self):
        words = [t.text for t in self.svg.iter(SVG + "text")]
        for w in self.result["workloads"]:
            self.assertIn(w["title"], words)
        ways = [n for n in self.ways() if n in plot.LOOK]
        for way in ways:
            marks = [e for e in self.svg.iter() if e.get("class") == way and e.tag != SVG + "rect"]
            measured = [w for w in self.result["workloads"] if way in w["cells"]]
            self.assertEqual(len(marks), len(measured) + 1, way)  # and the legend's


class Caught(unittest.TestCase):
    """A way to watch that changes what a command does is no faster one."""

    def cell(self, spoil, **workload):
        with tempfile.TemporaryDirectory(prefix="warder-bench-test-") as top:
            place = workloads.Place(os.path.join(top, "w"), measure.environment(top))
            row = workloads.Workload(
                "w", "w", lambda p, share: ["sh", "-c", "echo a; echo b >made/file"],
                reset=lambda p: p.empty(p.at("made")), made="made", **workload)
            ways = [measure.Mode("native", "native", lambda p, options: []),
                    measure.Mode("spoilt", "spoilt", lambda p, options: ["sh", "-c", spoil, "sh"])]
            return measure.Bench(row, place, ways, 0, lambda words: None).measure(None)["cells"]["spoilt"]

    def test_nothing_is_wrong(self):
        self.assertNotIn("wrong", self.cell('"$@"'))

    def test_status(self):
        self.assertIn("status 3", self.cell('"$@"; exit 3')["wrong"])

    def test_output(self):
        self.assertIn("output", self.cell('"$@"; echo more')["wrong"])

    def test_files(self):
        self.assertIn("files", self.cell('"$@"; echo more >>made/file')["wrong"])
        self.assertIn("files", self.cell('"$@"; chmod 600 made/file')["wrong"])

    def test_times_only_where_they_matter(self):
        old = '"$@"; touch -d 2001-01-01 made/file'
        self.assertNotIn("wrong", self.cell(old))
        self.assertIn("files", self.cell(old, times=True)["wrong"])

    def test_what_is_beyond_is_left_out(self):
        with tempfile.TemporaryDirectory(prefix="warder-bench-test-") as top:
            place = workloads.Place(os.path.join(top, "w"), measure.environment(top))
            row = workloads.Workload("w", "w", lambda p, share: ["true"])
            ways = [measure.Mode("native", "native", lambda p, options: []),
                    measure.Mode("part", "part", lambda p, options: ["env"]),
                    measure.Mode("whole", "whole", lambda p, options: ["env"], beyond="part")]
            measured = measure.Bench(row, place, ways, 1, lambda words: None)
            self.assertIn("whole", measured.measure(None)["cells"])
            measured.cells["whole"] = measure.Cell()
            measured.cells["part"].ms = [measure.CELL_SECONDS * 1000.0]
            self.assertNotIn("whole", measured.measure(None)["cells"])

    def test_the_clock_stops_with_the_command(self):
        """Not at the next time that somebody looks: of ten short ones no two would take the same."""
        with tempfile.TemporaryDirectory(prefix="warder-bench-test-") as top:
            env = measure.environment(top)
            looked = {round(measure.run(["sleep", f"0.0{i}5"], top, env, top).ms, 1) for i in range(10)}
            self.assertGreater(len(looked), 7, looked)

    def test_what_was_made_is_put_away(self):
        with tempfile.TemporaryDirectory(prefix="warder-bench-test-") as top:
            place = workloads.Place(os.path.join(top, "w"), measure.environment(top))
            for text in "ab":
                place.empty(place.at("made"))
                workloads.trees.write(place.at("made", "file"), text)
            kept = [os.path.join(place.top, d, "it", "file") for d in os.listdir(place.top) if d[:4] == "old-"]
            self.assertEqual(len(kept), 1)
            with open(kept[0]) as f:
                self.assertEqual(f.read(), "a")

    def test_a_name_that_is_none(self):
        done = bench("--only", "nothing-of-that-name")
        self.assertEqual(done.returncode, 2)
        self.assertIn("grep", done.stderr)


class Numbers(unittest.TestCase):
    def test_ratio_and_spread(self):
        native = measure.Cell(ms=[90, 10, 10, 10], cpu_ms=[9, 3, 3, 3])
        cell = measure.Cell(ms=[1000, 18, 20, 24], cpu_ms=[9, 6, 6, 6], share=0.5)
        told = cell.numbers(native)
        self.assertEqual(told["median_ms"], 20)
        self.assertEqual(told["ratio"], 4)
        self.assertEqual(told["cpu_ratio"], 4)
        self.assertEqual(told["spread"], 0.1)

    def test_the_clock_of_a_busy_machine_is_not_plotted(self):
        cell = {"ratio": 3, "cpu_ratio": 7, "median_ms": 2, "q1_ms": 1, "q3_ms": 4}
        for busy, shown in ((0.1, "3.00"), (0.9, "7.00")):
            drawn = plot.svg({"machine": {"cpu": "c", "cpus": 2, "kernel": "k", "busy_before": busy},
                              "modes": [{"name": "fast", "title": "warder"}],
                              "workloads": [{"title": "w", "apart": False, "cells": {"fast": cell}}]})
            self.assertIn(f">{shown}<", drawn)
            self.assertEqual("90 % busy" in drawn, busy == 0.9)
            self.assertEqual("<rect" in drawn, busy == 0.1)

    def test_what_the_plot_can_not_hold_stays_on_it(self):
        self.assertEqual(plot.x_of(1e9), plot.x_of(plot.AXIS[1]))
        self.assertLess(plot.x_of(1), plot.x_of(2))


if __name__ == "__main__":
    unittest.main(verbosity=2)
