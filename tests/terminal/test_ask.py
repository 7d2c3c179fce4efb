"""warder ask in a second terminal answers the questions of runs in others."""

import os
import re
import sys
import unittest

sys.path.insert(0, os.path.dirname(__file__))
from tmux_help import Terminal  # noqa: E402  (the helper lies beside this file)


class Ask(unittest.TestCase):
    def second(self, t, command):
        """Another window of the same terminal."""
        t.tmux("new-window", "env PS1='second> ' bash --norc --noprofile -i")
        t.wait_for("second>")
        t.line(command)

    def test_question_is_painted_and_answered(self):
        with Terminal() as t:
            secret = t.write_outside("secret", "found it\n")
            t.line(f"warder run --ask socket --label nightly -- sh -c 'cat {secret}; :'")
            t.wait_for("warder ask")
            self.second(t, "warder ask")
            shown = t.wait_for("[y] once")
            self.assertRegex(shown, r"run \w+ \(nightly\): sh -c 'cat\s")
            self.assertIn("read", shown)
            t.keys("d")
            t.wait_for("libc.so.6")  # the native stack came over
            t.keys("y")
            t.wait_for("once")
            t.tmux("previous-window")
            t.wait_for("found it")
            # It goes on waiting, for runs that come later.
            t.line(f"warder run --ask socket -- cat {secret}")
            t.tmux("next-window")
            t.wait_for("[y] once")
            t.keys("n")
            t.tmux("previous-window")
            t.wait_for("Permission denied")
            t.tmux("next-window")
            t.keys("C-c")
            self.assertIn("st=0", t.run("echo st=$?"))
            self.assertNotIn("-icanon", t.run("stty -a | grep -o -E -- '-?(icanon|echo) '"))

    def test_a_run_that_comes_stands_above_the_question(self):
        with Terminal(height=40) as t:
            secret, other = t.write_outside("secret", "found it\n"), t.write_outside("other", "that too\n")
            t.line(f"warder run --ask socket --label first -- cat {secret}")
            t.wait_for("warder ask")
            self.second(t, "clear; warder ask")
            t.wait_for("[y] once")
            t.tmux("new-window", f"warder run --ask socket --label second -- cat {other}")
            t.tmux("select-window", "-t", ":1")
            shown = t.wait_for("2 questions wait")
            self.assertEqual(1, shown.count("asks to read"), shown)
            self.assertLess(shown.index("(first)"), shown.index("(second)"))
            self.assertLess(shown.index("(second)"), shown.index("asks to read"))
            t.wait_for("[y] once")  # keys count
            t.keys("y")
            t.wait_for("questions wait", absent=True)
            t.wait_for("[y] once")  # keys count
            t.keys("y")
            shown = t.wait_for("asks to read", absent=True)
            self.assertEqual(2, shown.count("allowed once"), shown)

    def test_once_ends_by_itself(self):
        with Terminal() as t:
            secret = t.write_outside("secret", "found it\n")
            t.line(f"warder run --ask socket -- cat {secret}")
            t.wait_for("warder ask")
            self.second(t, "warder ask --once; echo st=$?")
            t.wait_for("[y] once")
            t.keys("y")
            t.wait_for("st=0")
            t.line("clear; warder ask --once; echo none=$?")
            self.assertIn("warder: nothing waits for an answer\n", t.wait_for("none=1"))

    def test_a_run_that_ends_takes_its_question_along(self):
        with Terminal() as t:
            secret = t.write_outside("secret", "found it\n")
            t.line(f"warder run --ask socket -- sh -c 'cat {secret} & sleep 100'")
            t.wait_for("warder ask")
            self.second(t, "clear; warder ask")
            t.wait_for("[y] once")
            t.tmux("send-keys", "-t", ":0", "C-c")
            self.assertRegex(t.wait_for(": ended"), r"warder: run [0-9a-f]{8}: ended\n")
            t.wait_for("asks to read", absent=True)

    def recipe(self):
        """The command of README that opens a popup, without `tmux`."""
        with open(os.path.join(os.environ["SOURCE_DIR"], "README.md"), encoding="utf-8") as f:
            return re.search(r"^\$ tmux (popup .*?) +#", f.read(), re.M).group(1)

    def popup(self, t):
        t.keys("C-b", ":")
        t.wait_for_that(lambda shown: shown.rstrip().endswith("\n:"))
        t.line(self.recipe())

    def test_in_a_popup(self):
        with Terminal() as t:
            secret = t.write_outside("secret", "found it\n")
            inner = os.path.join(t.folder, "inner")  # who looks on is a tmux's client: its terminal is ours
            try:
                t.line(f"env -u TMUX tmux -S {inner} -f /dev/null new-session 'PS1=inner\\> exec bash --norc --noprofile'")
                t.wait_for("inner>")
                t.line(f"warder run --ask socket --label a-long-label -- cat {secret}")
                t.wait_for("a question waits; in another terminal: warder ask ")
                self.popup(t)
                shown = t.wait_for("[y] once")
                # All that an answer needs is there, however small the popup.
                self.assertIn("warder: cat asks to read", shown)
                self.assertIn("path ", shown)
                self.assertIn("this path only", shown)
                t.wait_for("[y] once")  # keys count
                t.keys("y")
                t.wait_for("found it")
                t.wait_for("┐", absent=True)
                # Where nothing waits it says so, and stands until one has read it.
                self.popup(t)
                t.wait_for("nothing waits for an answer")
                t.keys("C-c")
                t.wait_for("┐", absent=True)
            finally:
                t.tmux("-S", inner, "kill-server", check=False)

    def test_another_size(self):
        with Terminal(width=100, height=30) as t:
            secret = t.write_outside("secret", "found it\n")
            t.line(f"warder run --ask socket -- sh -c 'cat {secret} {'words ' * 60}'")
            t.wait_for("warder ask")
            self.second(t, "clear; warder ask")
            t.wait_for("[y] once")
            for width, height in ((44, 24), (100, 30), (60, 12), (120, 30)):
                t.resize(width, height)
                shown = t.wait_for_that(lambda s: s.count("asks to read") == 1 and s.count("[y] once") == 1)
                self.assertIn("  path ", shown)
                self.assertLessEqual(shown.count("warder: run "), 1, shown)
            t.wait_for("[y] once")  # keys count
            t.keys("y")
            t.wait_for("allowed once")

    def test_leaving_leaves_the_question_open(self):
        with Terminal() as t:
            secret = t.write_outside("secret", "found it\n")
            t.line(f"warder run --ask socket -- cat {secret}")
            t.wait_for("warder ask")
            self.second(t, "warder ask & sleep 0.5; kill -TERM %1; wait; echo st=$?")
            t.wait_for("st=")
            t.line("clear")
            t.wait_for("warder", absent=True)
            t.line("warder ask --once")
            t.wait_for("[y] once")
            t.keys("y")
            t.tmux("previous-window")
            t.wait_for("found it")


if __name__ == "__main__":
    unittest.main()
