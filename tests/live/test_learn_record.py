#!/usr/bin/env python3
"""What warder record saw of real programs, learned: under that policy the same run is refused nothing."""

import os
import shutil

from run_help import WARDER, RunCase, both_users, main, needs


@both_users
class Recorded(RunCase):
    def learn_from(self, *command, again=None, **more):
        trace = os.path.join(self.dir, "t.jsonl")
        done = self.native(WARDER, "record", "--permissive", "-o", trace, "--", *command, **more)
        self.assertStatus(done)
        learned = self.native(WARDER, "learn", "--verify", trace)
        self.assertStatus(learned)
        self.assertIn("warder: verified: ", learned.err)
        policy = self.write("learned", learned.out)
        if again:
            again()
        done = self.run_report("--policy", policy, "--", *command, **more)
        self.assertStatus(done)
        refused = [(d["path"], d["access"]) for d in done.report["denials"]
                   if d["verdict"] == "sandbox" and d["answer"] == "deny"]
        self.assertEqual([], refused, learned.out)
        return [line.partition("  # ")[0].strip() for line in learned.out.splitlines() if line and line[0] != "#"]

    def test_a_few_files(self):
        self.write("outside/in", "x")
        rules = self.learn_from("sh", "-c", f"cat {self.outside}/in > {self.home}/out; mkdir {self.home}/d; rmdir {self.home}/d",
                                again=lambda: os.unlink(f"{self.home}/out"))
        self.assertEqual([f"allow r {self.outside}/in", "allow w ~/d", "allow w ~/out"], sorted(rules))

    @needs("git")
    def test_git(self):
        self.write("home/.gitconfig", "[user]\nname = u\nemail = u@example.org\n")
        self.write("home/.config/git/ignore", "*.o\n")
        self.native("git", "init", "-q", f"{self.outside}/up")
        clone = f"{self.outside}/clone"
        rules = self.learn_from("sh", "-c", f"git clone -q ../outside/up {clone} 2>&1; cd {clone}; git add -A; "
                                "git commit -q --allow-empty -m x",
                                again=lambda: shutil.rmtree(clone))
        self.assertTrue("use git" in rules or "allow r ~/.gitconfig" in rules, rules)
        self.assertFalse([r for r in rules if r.split()[2:3] in (["~"], [self.outside], ["/tmp"])], rules)

    @needs("make", "gcc")
    def test_make(self):
        self.write("project/Makefile", "a: a.c\n\tgcc -o a a.c\n")
        self.write("project/a.c", "int main(void) { return 0; }\n")
        self.assertEqual([], self.learn_from("make", again=lambda: os.unlink(f"{self.project}/a")))

    def test_import_what_was_learned(self):
        self.write("outside/in", "x")
        trace = os.path.join(self.dir, "t.jsonl")
        self.native(WARDER, "record", "--permissive", "-o", trace, "--", "cat", f"{self.outside}/in")
        done = self.native("sh", "-c", f"'{WARDER}' learn '{trace}' | '{WARDER}' policy import --yes -")
        self.assertStatus(done)
        self.assertIn(f"+ allow r {self.outside}/in  # ", done.out)
        self.assertStatus(self.run_report("--", "cat", f"{self.outside}/in"))


if __name__ == "__main__":
    main()
