#!/usr/bin/env python3
"""What a process did with a refusal: a walk along PATH is told once, by how it ended; so is what became of the process."""

import os
import re
import shutil
import signal

from run_help import RunCase, allow, both_users, deny, main

PASSED_OVER = r"a program earlier on PATH was refused 1× \(tool\), and another one ran instead"
WALKERS = {
    "env": ["env", "tool"],
    "dash": ["dash", "-c", "tool; exit $?"],
    "subprocess": ["/usr/bin/python3", "-c", "import subprocess; subprocess.run(['tool'], check=True)"],
    "posix_spawnp": ["/usr/bin/python3", "-c",
                     "import os, sys; p = os.posix_spawnp('tool', ['tool'], os.environ); sys.exit(os.waitpid(p, 0)[1] != 0)"],
    "execvp": ["/usr/bin/python3", "-c", "import os; os.execvp('tool', ['tool'])"],
}


@both_users
class Walks(RunCase):
    def tools(self, *places, mode=0o755):
        """A `tool` in each; they are PATH."""
        for place in places:
            path = self.write(os.path.join(place, "tool"))
            shutil.copy("/usr/bin/true", path)
            os.chmod(path, mode)
        found = [os.path.join(self.dir, place) for place in places]
        self.env["PATH"] = ":".join([*found, "/usr/bin", "/bin"])
        return [os.path.join(place, "tool") for place in found]

    def walkers(self, *names):
        return [WALKERS[name] for name in names or WALKERS if shutil.which(WALKERS[name][0])]

    def test_one_denial_where_it_finds_nothing(self):
        first, _ = self.tools("outside/1", "outside/2")
        for command in self.walkers():
            done = self.run_report("--", *command)
            self.assertNotEqual(0, done.status)
            d, = done.report["denials"]
            self.assertEqual((first, 1, ["read", "exec"], "sandbox", "deny"),
                             (d["path"], d["count"], d["access"], d["verdict"], d["answer"]))
            self.assertEqual([], done.report["engine"]["notes"])

    def test_none_where_a_later_one_runs(self):
        self.tools("outside/1", "project/bin")
        for command in self.walkers():
            done = self.run_report("--", *command)
            self.assertStatus(done)
            self.assertEqual([], done.report["denials"])
            self.assertRegex("\n".join(done.report["engine"]["notes"]), rf"\A{PASSED_OVER}\Z")

    def test_who_looks_first_does_not_walk(self):
        first, _ = self.tools("outside/1", "project/bin")
        for command, status in ((["bash", "-c", "tool; exit $?"], 126),
                                (["make", "-s", "-f", "/dev/null", "--eval", "all:;@tool"], 2)):
            if not shutil.which(command[0]):
                continue
            done = self.run_report("--", *command)
            self.assertStatus(done, status)
            self.assertEqual([first], [d["path"] for d in done.report["denials"] if "exec" in d["access"]])

    def test_the_first_that_a_grant_would_help(self):
        plain, = self.tools("project/plain", mode=0o644)
        refused, = self.tools("outside/1")
        self.env["PATH"] = f"{self.project}/plain:{self.outside}/1:/usr/bin:/bin"
        for command in self.walkers("env", "subprocess"):
            d, = self.run_report("--", *command).report["denials"]
            self.assertEqual((refused, "sandbox"), (d["path"], d["verdict"]))
        os.unlink(refused)
        for command in self.walkers("env", "subprocess"):
            d, = self.run_report("--", *command).report["denials"]
            self.assertEqual((plain, "permissions"), (d["path"], d["verdict"]))

    def test_a_directory_that_is_there_twice(self):
        first, _ = self.tools("outside/1", "outside/2")
        self.env["PATH"] = f"{self.outside}/1:{self.outside}/1:{self.outside}/2:" + self.env["PATH"]
        d, = self.run_report("--", "env", "tool").report["denials"]
        self.assertEqual((first, 1), (d["path"], d["count"]))
        self.tools("project/bin")
        self.env["PATH"] = f"{self.outside}/1:{self.outside}/1:{self.project}/bin:/usr/bin:/bin"
        self.assertEqual([], self.run_report("--", "env", "tool").report["denials"])

    def test_another_name_is_another_matter(self):
        first, _ = self.tools("outside/1", "project/bin")
        code = (f"import os\ntry: os.execv('{first}', ['tool'])\n"
                "except PermissionError: os.execv('/usr/bin/true', ['true'])")
        done = self.run_report("--", "/usr/bin/python3", "-c", code)
        self.assertStatus(done)
        self.assertEqual([(first, {"exited": 0})], [(d["path"], d["after"]) for d in done.report["denials"]])

    def test_what_a_rule_denies_is_a_step_as_well(self):
        first, second, _ = self.tools("outside/1", "outside/2", "project/bin")
        done = self.run_report("--rule", f"deny x {self.outside}", "--", "env", "tool")
        self.assertStatus(done)
        self.assertEqual([], done.report["denials"])
        os.unlink(f"{self.project}/bin/tool")
        done = self.run_report("--rule", f"deny x {self.outside}", "--", "env", "tool")
        self.assertEqual([(first, "policy")], [(d["path"], d["by"]) for d in done.report["denials"]])

    def test_each_walk_counts(self):
        first, _ = self.tools("outside/1", "outside/2")
        done = self.run_report("--", "sh", "-c", "for i in 1 2 3; do env tool; done")
        self.assertEqual([(first, 3)], [(d["path"], d["count"]) for d in done.report["denials"]])

    def test_held_is_asked_about_what_would_have_run(self):
        first, second, _ = self.tools("outside/1", "outside/2", "project/bin")
        done = self.hold("--", "env", "tool", answer=deny)
        self.assertStatus(done)  # the third runs
        self.assertEqual([first, second], [q["path"] for q in done.asked])
        self.assertEqual([(first, "deny", "user"), (second, "deny", "user")],
                         [(d["path"], d["answer"], d["by"]) for d in done.report["denials"]])
        done = self.hold("--", "env", "tool", answer=allow())
        self.assertStatus(done)
        self.assertEqual([first], [q["path"] for q in done.asked if q["call"] == "execve"])

    def test_held_is_not_asked_about_what_could_not_run(self):
        self.tools("outside/1", mode=0o644)
        self.tools("project/bin")
        self.env["PATH"] = f"{self.outside}/1:{self.outside}/none:{self.project}/bin:/usr/bin:/bin"
        done = self.hold("--", "env", "tool", answer=deny)
        self.assertStatus(done)
        self.assertNothingAsked(done)
        self.assertEqual([], done.report["denials"])

    def test_retry_asks_about_one(self):
        first, _ = self.tools("outside/1", "outside/2")
        done = self.hold("--on-denial", "retry", "--", "env", "tool", answer=deny)
        self.assertEqual([first], [q["path"] for q in done.asked])
        self.tools("outside/1", "project/bin")
        done = self.hold("--on-denial", "retry", "--", "env", "tool", answer=deny)
        self.assertStatus(done)
        self.assertNothingAsked(done)

    def test_who_dies_on_the_way_was_refused(self):
        first, _ = self.tools("outside/1", "outside/2")
        code = f"import os, signal\ntry: os.execv('{first}', ['tool'])\nexcept OSError: os.kill(os.getpid(), signal.SIGKILL)"
        done = self.run_report("--", "sh", "-c", '/usr/bin/python3 -c "$0"; true', code)
        self.assertEqual([(first, {"signal": 9})], [(d["path"], d["after"]) for d in done.report["denials"]])


@both_users
class After(RunCase):
    def setUp(self):
        super().setUp()
        self.secret = self.write("outside/secret", "the secret\n")

    def after(self, script, *options):
        done = self.run_report(*options, "--", "bash", "-c", script)
        d, = done.denials(self.secret)
        line, = [line for line in done.err.splitlines() if line.startswith("warder: refused")]
        return d["after"], re.search(r"\((.*?)\)", line).group(1)

    def test_how_it_ended(self):
        for script, after, words in (
                (f"cat {self.secret}", {"exited": 1}, "cat, 1×, then exited 1"),
                (f"cat {self.secret}; true", {"exited": 1}, "cat, 1×, then exited 1"),
                (f"read x < {self.secret}; exit 0", {"exited": 0}, "bash, 1×"),
                (f"read x < {self.secret}; kill -ABRT $$", {"signal": signal.SIGABRT}, "bash, 1×, then ended by SIGABRT"),
                (f"(read x < {self.secret}; exit 7) | true", {"exited": 7}, "bash, 1×, then exited 7"),
                (f"read x < {self.secret}; read x < {self.secret}; exit 3", {"exited": 3}, "bash, 2×, then exited 3")):
            with self.subTest(script):
                self.assertEqual((after, words), self.after(script))

    def test_it_is_the_one_that_is_named(self):
        done = self.run_report("--", "sh", "-c", f"cat {self.secret}; exec cat {self.secret} 2>/dev/null")
        d, = done.report["denials"]
        self.assertEqual((2, {"exited": 1}), (d["count"], d["after"]))

    def test_a_leftover_is_ended(self):
        done = self.run_report("--", "sh", "-c", f"(read x < {self.secret}; exec sleep 60) & sleep 0.2")
        d, = done.denials(self.secret)
        self.assertEqual({"signal": signal.SIGTERM}, d["after"])

    def test_after_an_answer_too(self):
        done = self.hold("--", "sh", "-c", f"cat {self.secret} /none", answer=allow())
        self.assertEqual([("allow", {"exited": 1})], [(d["answer"], d["after"]) for d in done.denials(self.secret)])
        done = self.hold("--on-denial", "retry", "--", "cat", self.secret, answer=deny)
        self.assertEqual([("deny", {"exited": 1})], [(d["answer"], d["after"]) for d in done.denials(self.secret)])


if __name__ == "__main__":
    main()
