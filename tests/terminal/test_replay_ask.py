"""warder replay --ask: what a recording was refused is asked about on a real terminal, offline."""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(__file__))
from tmux_help import Terminal  # noqa: E402  (the helper lies beside this file)


class ReplayAsk(unittest.TestCase):
    def record(self, t, names=("one", "two", "three")):
        paths = [t.write_outside(name, name + "\n") for name in names]
        t.run(f"warder record --on-denial report -q -o t.jsonl -- cat {' '.join(paths)} 2>&1 | tail -1")
        for path in paths:
            os.unlink(path)  # offline: nothing of it is looked at
        t.line("clear")
        t.wait_for("cat", absent=True)

    def answer(self, t, *keys):
        t.wait_for("[y] once")
        t.keys(*keys)

    def test_a_rule_settles_what_it_covers(self):
        with Terminal(width=110, height=40) as t:
            self.record(t)
            t.line("warder replay --ask t.jsonl; echo st=$?")
            shown = t.wait_for("[y] once")
            self.assertIn("one", shown)
            self.assertIn("not known here", shown)
            t.keys("2", "s")
            shown = t.wait_for("st=0")
            self.assertIn("your answers as rules:", shown)
            self.assertRegex(shown, r"\n  allow read /\S+/outside\n")
            self.assertNotIn("always", shown.split("st=0")[0].split("[y] once")[-1].split("\n")[0])

    def test_once_is_for_one_and_no_stays(self):
        with Terminal(width=110, height=40) as t:
            self.record(t)
            t.line("warder replay --ask t.jsonl; echo st=$?")
            self.answer(t, "y")
            t.wait_for("allowed once")
            self.answer(t, "n")
            t.wait_for("[y] once")  # keys count
            self.answer(t, "n")
            shown = t.wait_for("st=1")
            self.assertEqual(shown.count("refused read"), 2 + shown.count("warder: refused read"), shown)

    def test_ctrl_c_leaves_the_rest_as_it_was(self):
        with Terminal(width=110, height=40) as t:
            self.record(t)
            t.line("warder replay --ask t.jsonl; echo st=$?")
            self.answer(t, "C-c")
            shown = t.wait_for("st=1")
            self.assertIn("three", shown)

    def test_without_a_terminal(self):
        with Terminal(width=110) as t:
            self.record(t, ("one",))
            shown = t.run("setsid -w warder replay --ask t.jsonl </dev/null 2>&1 | cat")
            self.assertIn("--ask needs a terminal", shown)


if __name__ == "__main__":
    unittest.main()
