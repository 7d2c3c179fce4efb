"""
strace's own text, replayed: tests/strace/logs were written by strace with all kinds of options (make.py
there; hand-* by hand, as other versions write), and each has its denials under tests/strace/policy.
"""

import json
import os
import subprocess
import unittest

WARDER = os.path.realpath(os.environ["WARDER"])
SOURCE = os.environ["SOURCE_DIR"]
HERE = os.path.join(SOURCE, "tests", "strace")
LOGS = os.path.join(HERE, "logs")
CWD = "/home/ann/proj"


def files_of(name):
    """A log, or the files of one strace -ff."""
    alone = os.path.join(LOGS, name + ".log")
    if os.path.exists(alone):
        return [alone]
    return sorted(os.path.join(LOGS, f) for f in os.listdir(LOGS) if f.rpartition(".")[0] == name)


def warder(*args):
    env = {"PATH": "/usr/bin:/bin", "HOME": "/home/ann"}
    return subprocess.run([WARDER, *args], env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=60,
                          check=False)


def replay(files, *options, cwd=CWD):
    r = warder("replay", "--policy", os.path.join(HERE, "policy"), "--cwd", cwd, "--json", *options, *files)
    assert r.returncode in (0, 1), (files, r)
    return json.loads(r.stdout), r


def told(denial):
    """As in expected.json."""
    access = ",".join(sorted(denial["access"]))
    return f"{access} {denial['path']}" + (f" -> {denial['path2']}" if "path2" in denial else "")


class Logs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with open(os.path.join(HERE, "expected.json"), encoding="ascii") as f:
            cls.rows = json.load(f)

    def test_each_log_is_expected(self):
        stems = {f.removesuffix(".log") if f.endswith(".log") else f.rpartition(".")[0] for f in os.listdir(LOGS)}
        named = [name for row in self.rows for name in row["logs"]]
        self.assertEqual(sorted(named), sorted(stems))
        self.assertGreaterEqual(len(named), 30)

    def test_denied_and_unsure(self):
        for row in self.rows:
            for name in row["logs"]:
                with self.subTest(name):
                    report, r = replay(files_of(name))
                    self.assertEqual(sorted({told(d) for d in report["denials"]}), sorted(row["denied"]))
                    self.assertLessEqual({d["verdict"] for d in report["denials"]}, {"sandbox"})
                    self.assertEqual(len(report["replay"]["unsure"]), row.get("unsure", {}).get(name, 0))
                    trace, = report["replay"]["traces"]
                    self.assertEqual(trace["faults"], row.get("faults", {}).get(name, 0))
                    self.assertEqual(trace["complete"], name not in row.get("incomplete", ()))
                    self.assertEqual(r.returncode, 1 if row["denied"] else 0)

    def test_the_same_twice(self):
        for name in ("tt-T", "ff", "odd-names"):
            self.assertEqual(replay(files_of(name))[1].stdout, replay(files_of(name))[1].stdout)

    def test_faults_are_told_by_their_place(self):
        name = files_of("hand-names-cut")[0]
        _, r = replay([name])
        lines = r.stderr.decode().splitlines()
        self.assertEqual(len(lines), 2, lines)
        self.assertTrue(lines[0].startswith(f"warder: {name}:8:5: "), lines)
        self.assertTrue(lines[1].startswith(f"warder: {name}:9:"), lines)

    def test_many_faults_are_counted(self):
        r = subprocess.run([WARDER, "replay", "--policy", os.path.join(HERE, "policy"), "--cwd", CWD, "-"],
                           input=b"close(3) = 0\n" + 50 * b"noise\n", capture_output=True, timeout=60,
                           env={"HOME": "/home/ann"}, check=False)
        self.assertEqual(r.returncode, 0, r)
        self.assertEqual(len(r.stderr.splitlines()), 5, r.stderr)
        self.assertIn(b"50 lines could not be read", r.stdout)

    def test_what_is_unsure_says_why(self):
        report, _ = replay(files_of("hand-names-cut"))
        notes = [u["why"] for u in report["replay"]["unsure"]]
        self.assertIn("the name is not told to its end", notes)
        self.assertIn("a flag of the call is not known", notes)

    def test_a_colleagues_paths_are_brought_home(self):
        report, _ = replay(files_of("f-o"), "--map", "/home/ann=/home/bob")
        self.assertIn("read /home/bob/.ssh/id", {told(d) for d in report["denials"]})

    def test_where_it_started(self):
        """Started elsewhere it wrote elsewhere, and not what the policy keeps."""
        kept = "delete /home/ann/proj/keep/f"
        self.assertIn(kept, {told(d) for d in replay(files_of("hand-4.x-stderr"))[0]["denials"]})
        self.assertNotIn(kept, {told(d) for d in replay(files_of("hand-4.x-stderr"), cwd="/elsewhere")[0]["denials"]})

    def test_any_way_to_write_a_directory(self):
        log = files_of("hand-5.0")
        for cwd in (CWD + "/", "//home/./ann//proj", "/home/ann/proj/sub/.."):
            self.assertEqual(replay(log)[0]["denials"], replay(log, cwd=cwd)[0]["denials"], cwd)

    def test_a_trace_knows_better_where_it_started(self):
        """The shell asks for its directory (getcwd): what it says counts."""
        here = {told(d) for d in replay(files_of("moves"))[0]["denials"]}
        there = {told(d) for d in replay(files_of("moves"), cwd="/elsewhere")[0]["denials"]}
        self.assertEqual({d for d in here if "/keep/" in d}, {d for d in there if "/keep/" in d})

    def test_learned_from(self):
        r = warder("learn", "--cwd", CWD, *files_of("tt-T"), *files_of("ff"))
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertIn(b"/srv/data", r.stdout)


if __name__ == "__main__":
    unittest.main()
