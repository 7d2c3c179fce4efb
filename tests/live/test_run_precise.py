#!/usr/bin/env python3
"""Only what a yes would help is asked, with all that it opens; and what waits can be ended."""

import os
import signal
import subprocess
import time

from run_help import SLOW, WARDER, RunCase, Talk, both_users, deny, main, needs, wait_until


def two_waits(status):
    """A command that has ended, and a leftover that is waited for."""
    return ("--leftovers", "wait", "--", "sh", "-c", f"sleep 600 & echo ready; exit {status}")


@both_users
class Moves(RunCase):
    def test_from_outside_is_asked_whole_and_done(self):
        self.write("outside/f", "text\n")
        done = self.hold("--", "mv", f"{self.outside}/f", "here")
        self.assertStatus(done)
        self.assertEqual("text\n", self.read("project/here"))
        self.assertFalse(os.path.exists(f"{self.outside}/f"))
        self.assertEqual(1, len(done.asked), done)
        self.assertLessEqual({"read", "write", "exec", "delete", "move"}, set(done.asked[0]["access"]))
        self.assertEqual(f"{self.outside}/f", done.asked[0]["path"])

    def test_into_what_is_asked_about_inside_of_what_is_allowed(self):
        """A yes to a name that is not there yet is one to a move as well."""
        self.write("project/sub/f", "old\n")
        for program in ("mv", "ln"):
            self.write("project/new", "text\n")
            done = self.hold("--rule", "ask w sub", "--", program, "new", f"sub/{program}")
            self.assertStatus(done)
            self.assertEqual(1, len(done.asked), done)
            self.assertEqual("text\n", self.read(f"project/sub/{program}"))
            done = self.hold("--rule", "ask w sub", "--", "sh", "-c", f"echo x > n; {program} n sub/no", answer=deny)
            self.assertNotEqual(0, done.status)
            self.assertFalse(os.path.exists(f"{self.project}/sub/no"))

    def test_a_link_from_outside(self):
        self.write("outside/f", "text\n")
        done = self.hold("--", "ln", f"{self.outside}/f", "here")
        self.assertStatus(done)
        self.assertEqual(1, len(done.asked), done)
        self.assertTrue(os.path.samefile(f"{self.outside}/f", f"{self.project}/here"))

    def test_no_stays_no(self):
        self.write("outside/f", "text\n")
        done = self.hold("--", "ln", f"{self.outside}/f", "here", answer=deny)
        self.assertStatus(done, 1)
        self.assertFalse(os.path.exists(f"{self.project}/here"))

    def test_a_directory_is_copied_where_it_cannot_be_moved(self):
        self.write("outside/dir/f", "text\n")
        done = self.hold("--", "mv", f"{self.outside}/dir", "here")
        self.assertStatus(done)
        self.assertEqual("text\n", self.read("project/here/f"))
        self.assertFalse(os.path.exists(f"{self.outside}/dir"))
        self.assertNotIn(f"{self.outside}/dir", [q["path"] for q in done.asked
                                                 if q["call"].startswith("rename")])

    def test_a_protected_thing_is_not_asked_about(self):
        self.write("project/locked/f", "text\n")
        done = self.hold("--rule", "deny w locked/f", "--", "mv", "locked", f"{self.outside}/x")
        self.assertNotEqual(0, done.status)
        self.assertEqual("text\n", self.read("project/locked/f"))
        self.assertEqual([], [q for q in done.asked if "/locked" in q.get("path2", "") + q["path"]
                              and q["call"].startswith("rename")], done)


@both_users
class NotAsked(RunCase):
    def test_removing_one_of_several_names_of_a_file(self):
        self.write("project/.git/HEAD", "ref: refs/heads/x\n")
        self.write("project/.git/config", "[core]\n")
        for name in ("objects", "refs"):
            os.mkdir(f"{self.project}/.git/{name}")
            self.own(f"{self.project}/.git/{name}")
        done = self.hold("--", "sh", "-c", "mkdir new && echo x > new/a && ln new/a new/b && rm new/b",
                         answer=deny)
        self.assertStatus(done)
        self.assertNothingAsked(done)
        self.assertEqual(["a"], os.listdir(f"{self.project}/new"))

    def test_what_can_not_be_removed_that_way(self):
        self.write("outside/dir/f")
        self.write("outside/file")
        for program, name, why in (("rmdir", "dir", "Directory not empty"),
                                   ("unlink", "dir", "Is a directory"),
                                   ("rmdir", "file", "Not a directory")):
            with self.subTest(program + name):
                done = self.hold("--", program, os.path.join(self.outside, name))
                self.assertStatus(done, 1)
                self.assertIn(why, done.err)
                self.assertNothingAsked(done)
                self.assertEqual([], done.report["denials"])

    def test_an_interpreter_that_may_not_run(self):
        for place in (self.project, self.outside):
            with self.subTest(place):
                interpreter = self.write(os.path.join(place, "plain"), "x", 0o644)
                self.write("project/script", f"#!{interpreter}\n", 0o755)
                done = self.hold("--", "sh", "-c", "./script")
                self.assertStatus(done, 126)
                self.assertNothingAsked(done)
                d, = done.denials(interpreter)
                self.assertEqual(("permissions", ["read", "exec"]), (d["verdict"], d["access"]))

    def test_what_is_no_regular_file_is_never_run(self):
        os.mkdir(f"{self.outside}/dir")
        os.mkfifo(f"{self.outside}/fifo", 0o755)
        for name in ("dir", "fifo"):
            with self.subTest(name):
                done = self.hold("--", "sh", "-c", f"{self.outside}/{name}")
                self.assertStatus(done, 126)
                self.assertNothingAsked(done)
                self.assertEqual(["other"], [d["verdict"] for d in done.denials()])

    def test_below_a_directory_that_may_not_be_searched(self):
        self.write("outside/closed/f", "x")
        os.chmod(f"{self.outside}/closed", 0o600)
        if self.uid == 0:
            self.skipTest("root searches every directory")
        done = self.hold("--", "cat", f"{self.outside}/closed/f")
        self.assertNothingAsked(done)
        d, = done.denials()
        self.assertEqual(("permissions", ["read"]), (d["verdict"], d["access"]))


    def test_a_name_that_leads_through_what_may_not_be_searched_is_absolute(self):
        if self.uid == 0:
            self.skipTest("root searches every directory")
        self.write("project/closed/f", "x")
        here = self.project
        for script, path in (("cat closed/f", f"{here}/closed/f"),
                             ("cd closed; chmod 0 .; cat < .", f"{here}/closed"),
                             ("cd closed; chmod 0 .; cat < f", f"{here}/closed/f"),
                             ("mv closed/f .", f"{here}/closed/f")):
            with self.subTest(script):
                os.chmod(f"{here}/closed", 0o700 if script.startswith("cd") else 0o600)
                done = self.run_report("--", "bash", "-c", script)
                self.assertEqual({("permissions", path)}, {(d["verdict"], d["path"]) for d in done.denials()},
                                 done)


@both_users
class Reopened(RunCase):
    def test_a_directory_that_its_owner_shut_is_opened_again(self):
        self.write("project/closed/f", "x")
        self.write("outside/f", "x")
        for script in ("chmod 0 closed; chmod 700 closed", "exec 3< closed; chmod 0 closed; chmod 700 /proc/self/fd/3"):
            with self.subTest(script):
                done = self.run_report("--deny", self.outside, "--", "bash", "-c", script)
                self.assertStatus(done)
                self.assertEqual([], done.report["denials"])


@both_users
class Suggested(RunCase):
    def test_not_what_a_saved_rule_denies(self):
        path = self.write("outside/f", "x")
        rules = self.write("rules", f"deny read {path} exact\n")
        done = self.run_report("--policy", rules, "--", "cat", path)
        self.assertStatus(done, 1)
        self.assertIn(f"denied by {rules}:1", done.err)
        self.assertNotIn("to allow", done.err)
        self.assertEqual([], done.report["suggested"])


@both_users
class Ended(RunCase):
    def end_with(self, args, sig):
        p = self.start([WARDER, "run", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(b"ready\n", p.stdout.readline())
        self.assertTrue(wait_until(lambda: not self.state_of_main(p)))
        p.send_signal(sig)
        return p.wait(timeout=10 * SLOW)

    def state_of_main(self, p):
        """The command, while it is there: its shell's only child afterwards is the sleep."""
        return any("sh" == self.name_of(c) for c in self.children_of(p))

    def name_of(self, pid):
        try:
            with open(f"/proc/{pid}/comm") as f:
                return f.read().strip()
        except (FileNotFoundError, ProcessLookupError):  # it can go while it is read
            return ""

    def test_waiting_for_leftovers(self):
        for sig in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
            with self.subTest(sig):
                self.assertEqual(-sig, self.end_with(two_waits(0), sig))

    def test_the_time_limit_holds_for_leftovers_that_are_waited_for(self):
        start = time.monotonic()
        done = self.run_report("--timeout", "1", *two_waits(0))
        self.assertStatus(done, 124)
        self.assertLess(time.monotonic() - start, 10 * SLOW)

    def test_a_stopped_command(self):
        p = self.start([WARDER, "run", "--", "sh", "-c", "echo ready; kill -STOP $$; sleep 600"],
                       stdout=subprocess.PIPE)
        self.assertEqual(b"ready\n", p.stdout.readline())
        time.sleep(0.3)
        p.send_signal(signal.SIGTERM)
        self.assertEqual(-signal.SIGTERM, p.wait(timeout=10 * SLOW))


@both_users
class Small(RunCase):
    def test_a_script_without_its_first_line_is_run_by_sh(self):
        path = self.write("project/plain", 'echo plain "$1"\n')
        os.chmod(path, 0o755)
        done = self.run_report("--", "./plain", "word")
        self.assertStatus(done)
        self.assertEqual("plain word\n", done.out)

    def test_the_shared_temporary_directory_is_open(self):
        done = self.run_report("--tmp", "shared", "--", "sh", "-c", "echo x > $TMPDIR/file && cat $TMPDIR/file")
        self.assertStatus(done)
        self.assertEqual("x\n", done.out)

    def test_who_dies_while_it_is_asked_about_was_refused(self):
        secret = self.write("outside/secret", "s\n")
        talk = Talk(self, ["--", "sh", "-c", f"cat {secret} & echo $!; wait"])
        question = talk.ask()
        os.kill(question["pid"], signal.SIGKILL)
        self.assertEqual("exited", talk.next("cancel")["reason"])
        done = talk.finish()
        [denial] = done.denials(secret)
        self.assertEqual(("deny", "none", "cat"), (denial["answer"], denial["by"], denial["argv0"]))

    def test_a_base_directory_elsewhere_is_as_wide_as_the_usual_one(self):
        files = [self.write(f"outside/data/{name}") for name in "abcdef"]
        tree = f"allow r {self.outside}/data"
        self.assertIn(tree, self.run_report("--", "cat", *files).report["suggested"])
        self.env["XDG_DATA_HOME"] = f"{self.outside}/data"
        done = self.run_report("--", "cat", *files)
        self.assertEqual([f"allow r {f}" for f in files], done.report["suggested"])

    def test_what_has_no_name_is_not_suggested(self):
        done = self.run_report("--", "sh", "-c", f"cd {self.outside}; mkdir -p x; ls .")
        self.assertTrue(done.report["suggested"])
        os.mkdir(os.path.join(self.outside, "gone"))
        self.own(os.path.join(self.outside, "gone"))
        done = self.run_report("--rule", f"allow w {self.outside}", "--", "sh", "-c",
                               f"cd {self.outside}/gone; rmdir ../gone; ls .")
        self.assertEqual([], [s for s in done.report["suggested"] if " ." in s], done)


@both_users
class Presets(RunCase):
    @needs("go")
    def test_go_in_a_home_without_anything(self):
        self.write("project/go.mod", "module x\n\ngo 1.18\n")
        self.write("project/m.go", "package main\n\nfunc main() { println(1) }\n")
        done = self.run_report("--preset", "go", "--", "go", "build", "-o", "m", ".", timeout=120)
        self.assertStatus(done)
        self.assertEqual([], done.denials(verdict="sandbox"))

    @needs("/usr/bin/python3")
    def test_python_makes_processes(self):
        self.write("project/.git/HEAD", "ref: refs/heads/x\n")
        self.write("project/.git/config", "[core]\n")
        self.write("project/m.py", "import multiprocessing\n"
                   "if __name__ == '__main__':\n"
                   "    with multiprocessing.Pool(2) as pool:\n"
                   "        print(pool.map(abs, [1, -2]))\n")
        done = self.run_report("--preset", "python", "--", "/usr/bin/python3", "m.py")
        self.assertStatus(done)
        self.assertEqual("[1, 2]\n", done.out)


if __name__ == "__main__":
    main()
