#!/usr/bin/env python3
"""What a person is told of a run's refusals: which call was refused what, and why it needed that."""

import os

from run_help import WARDER, RunCase, both_users, deny, main

MOVED = ["read", "exec", "write", "delete", "move", "meta"]
GAINED = ["read", "exec", "write", "meta"]
GAINS = "the rules for its new place would allow: read, exec, write, meta"


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
             f" to allow: warder policy allow read,write,meta {f} exact"], lines)

    def test_what_one_call_needs_stays_together(self):
        lines = self.lines(f"echo y >{self.outside}/new; true")
        self.assertEqual([f"warder: refused write,create {self.outside}/new (sh, 1×);"
                          f" to allow: warder policy allow write,create {self.outside}/new exact"], lines)

    def test_a_hint_opens_what_the_question_would(self):
        for name in ("f", "g", "h"):
            self.write(f"outside/{name}", "x")
        for command in ("echo y >new", "rm f", "mv g g2", "chmod 600 h", "cat h", "echo z >h", "echo z >>h", "ln h link"):
            with self.subTest(command):
                run = ("--", "sh", "-c", f"cd {self.outside}; {command}")
                scope = self.hold(*run, answer=deny).asked[0]["scopes"][0]
                done = self.run_report(*run)
                want = scope["rule"].replace("allow  ", "allow ").splitlines()
                if command == "cat h":
                    want = [f"allow r {self.outside}/h"]
                self.assertEqual(sorted(want), sorted(done.report["suggested"]))
                for line in want:
                    self.assertIn(f"to allow: warder policy {line}\n", done.err)

    def test_what_was_folded_says_how_many_paths_of_each(self):
        for name in "abcd":
            self.write(f"outside/{name}")
        lines = self.lines(f"cd {self.outside}; cat a b c d; echo y >a; echo z >new; ls . ; true")
        self.assertEqual(
            [f"warder: refused read {self.outside} (cat, 4 paths, 4×, then exited 1), write (sh, 1 path, 1×),"
             f" write,create (sh, 1 path, 1×) and list (1×);"
             f" to allow: warder policy allow rw {self.outside}"], lines)


@both_users
class Denied(RunCase):
    """What somebody said no to is told with whose word it was, and nobody is advised to undo it."""

    def lines(self, *args):
        done = self.run_report(*args)
        self.assertEqual([], [s for s in done.report["suggested"] if ".env" in s], done)
        return [line for line in done.err.splitlines() if line.startswith("warder: ")]

    def assertClosed(self, by, *args):
        lines = self.lines(*args, "--", "cat", self.dotenv)
        self.assertEqual([f"warder: refused read {self.dotenv} (cat, 1×, then exited 1); denied by {by}"], lines)

    def setUp(self):
        super().setUp()
        self.dotenv = self.write("project/.env", "T\n")

    def test_by_the_command_line(self):
        for path in (f"{self.project}/**/.env", self.dotenv, self.project):
            with self.subTest(path):
                self.assertClosed(f"your command line (deny r {path})", "--rule", f"deny r {path}")

    def test_by_a_file(self):
        policy = self.write("outside/policy", "deny r **/.env\n")
        self.assertClosed(f"{policy}:1", "--policy", policy)

    def test_by_the_projects_saved_policy(self):
        self.assertStatus(self.native(WARDER, "policy", "--project", "deny", "r", "**/.env"))
        lines = self.lines("--", "cat", self.dotenv)
        self.assertRegex(lines[0], r"; denied by /\S*/config/warder/projects/.*\.policy:\d+$")

    def test_by_the_users_saved_policy(self):
        self.assertStatus(self.native(WARDER, "policy", "deny", "r", "~/**/.env"))
        env = self.write("home/x/.env")
        lines = self.lines("--", "cat", env)
        self.assertRegex(lines[0], r"; denied by /\S*/config/warder/policy:\d+$")

    def test_one_end_of_a_move_is_enough(self):
        rule = f"deny w {self.outside}/**/.env"
        done = self.run_report("--rule", rule, "--", "mv", self.write("outside/f", "x"), f"{self.outside}/.env")
        self.assertEqual([], done.report["suggested"])
        self.assertIn(f"; denied by your command line ({rule})\n", done.err)

    def test_no_directory_around_it_is_suggested(self):
        """A rule for a whole directory goes before a pattern's deny."""
        files = [self.write(f"outside/d/{n}", "x") for n in ("a", "b", "c", "e", ".env")]
        done = self.run_report("--rule", f"deny r {self.outside}/**/.env", "--", "cat", *files)
        self.assertEqual([f"allow r {f}" for f in files[:-1]], done.report["suggested"])

    def test_without_a_wall_it_is_no_other(self):
        done = self.run_report("--permissive", "--rule", "deny r **/.env", "--", "cat", self.dotenv)
        self.assertEqual([], done.report["suggested"])
        self.assertNotIn("to allow", done.err)

    def test_a_replay_says_the_same(self):
        trace = os.path.join(self.dir, "trace")
        self.native(WARDER, "record", "-o", trace, "--rule", "deny r **/.env", "--", "cat", self.dotenv)
        self.assertNotIn("to allow", self.native(WARDER, "replay", trace).out)

    def test_a_presets_pattern(self):
        if os.getuid():
            self.skipTest("an ordinary user is kept out by the file's own permissions")
        done = self.run_report("--", "cat", "/etc/ssh/ssh_host_made_up_key")
        self.assertEqual([], done.report["suggested"])


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
