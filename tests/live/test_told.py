#!/usr/bin/env python3
"""What a person is told of a run's refusals: which call was refused what, and why it needed that."""

import os

from run_help import WARDER, RunCase, both_users, deny, main

MOVED = ["read", "exec", "write", "delete", "move", "meta"]
GAINED = ["read", "exec", "write", "meta"]
GAINS = "its new place would open it to read, exec, write, meta"


@both_users
class Summary(RunCase):
    def lines(self, command):
        done = self.run_report("--", "sh", "-c", command)
        return [line for line in done.err.splitlines() if line.startswith("warder: ")]

    def test_each_call_on_one_path_is_told_apart(self):
        f = self.write("outside/f", "x")
        lines = self.lines(f"cat {f}; cat {f}; echo y >{f}; chmod 600 {f}; true")
        self.assertEqual(
            [f"warder: refused read {f} (cat, 2×, then exited 1), write (sh, 1×) and meta (chmod, 1×, then exited 1);"
             f" to allow: warder policy allow rw {f}"], lines)

    def test_what_one_call_needs_stays_together(self):
        lines = self.lines(f"echo y >{self.outside}/new; true")
        self.assertEqual([f"warder: refused write,create {self.outside}/new (sh, 1×);"
                          f" to allow: warder policy allow w {self.outside}/new"], lines)

    def test_what_was_folded_says_how_many_paths_of_each(self):
        for name in "abcd":
            self.write(f"outside/{name}")
        lines = self.lines(f"cd {self.outside}; cat a b c d; echo y >a; echo z >new; ls . ; true")
        self.assertEqual(
            [f"warder: refused read {self.outside} (cat, 4 paths, 4×, then exited 1), write (sh, 1 path, 1×),"
             f" write,create (sh, 1 path, 1×) and list (1×);"
             f" to allow: warder policy allow rw {self.outside}"], lines)


@both_users
class Move(RunCase):
    """A file that may not be read where it lies, and may be run where it would go."""

    def setUp(self):
        super().setUp()
        self.file = self.write("outside/f", "x")
        self.move = ["--", "mv", self.file, "here"]

    def test_the_report_and_the_last_lines_say_why(self):
        done = self.run_report(*self.move)
        denial, = done.denials(self.file)
        self.assertEqual((MOVED, GAINED), (denial["access"], denial["gained"]))
        self.assertIn(f"(mv, 1×, then exited 1; {GAINS}); to allow: ", done.err)
        last = self.native(WARDER, "why", "--last").out
        self.assertIn(f"nobody was asked ({GAINS})\n", last)
        self.assertNotIn("own permissions", last)

    def test_the_question_says_why(self):
        done = self.hold(*self.move, answer=deny)
        self.assertEqual([GAINS], [q.get("note") for q in done.asked], done)

    def test_retry_asks_with_the_same_words(self):
        done = self.hold("--on-denial", "retry", *self.move, answer=deny)
        self.assertEqual([GAINS], [q.get("note") for q in done.asked], done)

    def test_a_trace_says_it_too(self):
        trace = os.path.join(self.dir, "trace")
        self.native(WARDER, "record", "-o", trace, *self.move)
        told = f"{self.file} and {self.project}/here (mv, "
        for options in ([], ["--preset", "docs"]):
            out = self.native(WARDER, "replay", *options, trace).out
            self.assertIn(told, out)
            self.assertIn(GAINS, out)
        part = os.path.join(self.dir, "part")
        self.write("part", self.native(WARDER, "replay", "--partial", trace).out)
        self.assertIn(GAINS, self.native(WARDER, "replay", part).out)

    def test_a_move_that_gains_nothing_says_nothing(self):
        os.mkdir(os.path.join(self.outside, "d"))
        self.own(os.path.join(self.outside, "d"))
        done = self.run_report("--", "mv", self.file, f"{self.outside}/d/f")
        self.assertNotIn("gained", done.denials(self.file)[0])
        self.assertNotIn("new place", done.err)


if __name__ == "__main__":
    main()
