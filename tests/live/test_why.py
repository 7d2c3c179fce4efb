#!/usr/bin/env python3
"""warder why: the rule that decides, the kernel's answer, and a command that really changes it."""

import json
import os
import re
import socket
import unittest

from run_help import WARDER, RunCase, both_users, main


@both_users
class Why(RunCase):
    def setUp(self):
        super().setUp()
        self.secret = self.write("outside/secret", "the secret\n")

    def why(self, *words, status=None):
        done = self.native(WARDER, "why", *words)
        if status is not None:
            self.assertStatus(done, status)
        return done

    def answers(self, *words, status=None):
        out = json.loads(self.why("--json", *words, status=status).out)
        self.assertEqual(1, out["warder_why"])
        return {name: a for a in out["answers"] for name in a["access"]}

    def policy(self, *words, status=0):
        done = self.native(WARDER, "policy", *words)
        self.assertStatus(done, status)
        return done

    def shell(self, command):
        """What a person would paste."""
        done = self.native("bash", "-c", f"warder() {{ '{WARDER}' \"$@\"; }}; {command}")
        self.assertStatus(done)

    def test_what_no_rule_names_is_asked_and_the_command_changes_it(self):
        done = self.why(self.secret, "read", status=1)
        self.assertIn("read: asked about\n  rule    none names it\n"
                      "  kernel  refuses it; warder asks, and after a yes does it in place\n", done.out)
        change = re.search(r"change  (.*)", done.out).group(1)
        self.assertEqual(f"warder policy allow read {self.secret}", change)
        self.shell(change)
        done = self.why(self.secret, "read", status=0)
        self.assertIn("read: allowed\n", done.out)
        self.assertRegex(done.out, rf"rule    allow read {self.secret}  \(.*/policy:1, since \d{{4}}-\d\d-\d\d or before\)")
        self.assertIn("kernel  lets it through by itself", done.out)

    def test_a_directory_to_be_listed_is_opened_alone_as_the_run_suggests(self):
        done = self.run_report("--", "ls", self.outside)
        want = f"warder policy allow list {self.outside} exact"
        self.assertIn(want + "\n", done.err)
        self.assertIn(f"change  {want}\n", self.why("--last", status=1).out)
        self.assertIn(f"change  {want}\n", self.why(self.outside, "list", status=1).out)
        self.shell(want)
        self.assertStatus(self.run_report("--", "ls", self.outside))
        self.assertEqual("ask", self.answers(self.secret, "read", status=1)["read"]["effect"])

    def test_a_directory_without_an_access_is_told_as_the_run_suggests_too(self):
        """What is of the directory itself apart from what is in it: each with the run's own command."""
        done = self.run_report("--", "ls", self.outside)
        self.assertIn(f"warder policy allow list {self.outside} exact\n", done.err)
        answers = self.answers(self.outside, status=1)
        self.assertEqual(f"warder policy allow list,delete,move {self.outside} exact", answers["list"]["change"])
        self.assertEqual(f"warder policy allow read,exec,write,create {self.outside}", answers["read"]["change"])
        out = self.why(self.outside, status=1).out
        for change in {a["change"] for a in answers.values()}:
            self.assertEqual(1, out.count(f"  change  {change}\n"), out)
        self.shell(answers["list"]["change"])
        self.assertStatus(self.run_report("--", "ls", self.outside))
        self.assertEqual("ask", self.answers(self.secret, "read", status=1)["read"]["effect"])

    def test_a_directory_that_a_call_was_about_is_told_as_the_run_suggests(self):
        for name in "ab":
            os.mkdir(os.path.join(self.outside, name))
            self.own(os.path.join(self.outside, name))
        exchange = ("import ctypes, os; n = [os.path.join(os.fsencode('../outside'), x) for x in (b'a', b'b')];"
                    "ctypes.CDLL(None).renameat2(-100, n[0], -100, n[1], 2)")
        done = self.run_report("--rule", f"allow w {self.outside}/b", "--", "/usr/bin/python3", "-c", exchange)
        want = re.search(r"to allow: (.* exact)\n", done.err).group(1)
        self.assertIn(f"change  {want}\n", self.why("--last", status=1).out)

    def test_every_kind_of_rule_and_its_way_out(self):
        """The command that is named turns the answer round, whatever rule decided."""
        rules = {
            "deny r FILE": ["user"], "deny r FILE exact": ["user"], "deny r DIR": ["user"], "ask r FILE": ["user"],
            "forbid FILE": ["user"], "forbid DIR": ["user"], "deny r DIR/s*": ["user"], "deny r **/secret exact": ["user"],
        }
        policy_file = self.policy("path").out.strip()
        for rule in rules:
            with self.subTest(rule):
                text = rule.replace("FILE", self.secret).replace("DIR", self.outside).replace("**", self.dir + "/**")
                self.write(os.path.relpath(policy_file, self.dir), text + "\n", 0o600)
                before = self.answers(self.secret, "read", status=1)["read"]
                self.assertEqual(rule.split()[0], before["effect"])
                self.assertEqual((policy_file, 1), (before["rule"]["origin"], before["rule"]["line"]))
                self.shell(before["change"])
                self.assertEqual("allow", self.answers(self.secret, "read", status=0)["read"]["effect"])

    def test_what_is_allowed_says_how_to_refuse_it(self):
        self.policy("allow", "rw", self.outside)
        for name, a in self.answers(self.secret, "rw", status=0).items():
            self.assertEqual("allow", a["effect"], name)
        self.shell(self.answers(self.secret, "write")["write"]["change"])
        self.assertEqual("deny", self.answers(self.secret, "write", status=1)["write"]["effect"])

    def test_the_kernel_is_asked_not_guessed(self):
        """An exception below: the ruleset can't have the directory, and warder does it in place."""
        self.write("outside/sub/key", "k")
        self.policy("allow", "rwx", self.outside)
        self.policy("deny", "r", f"{self.outside}/sub")
        a = self.answers(self.outside)
        self.assertEqual("refuses", a["create"]["landlock"])
        self.assertEqual("allow", a["create"]["effect"])
        self.assertEqual("grants", self.answers(self.secret, "read")["read"]["landlock"])
        self.assertEqual("no right", self.answers(self.secret, "meta")["meta"]["landlock"])
        self.assertIn("warder does it in the command's place", self.why(self.outside, "create").out)

    def test_the_answer_is_what_a_run_gets(self):
        """For each of many paths and rules, allowed means that a run can."""
        self.policy("allow", "r", self.outside)
        self.policy("deny", "r", f"{self.outside}/no")
        for name in ("yes", "no", "no/deep", "sub/yes"):
            if name == "no":
                self.write("outside/no/x")
            else:
                self.write(f"outside/{name}/x" if "deep" in name else f"outside/{name}")
        for name in ("yes", "no/x", "no/deep/x", "sub/yes"):
            file = f"{self.outside}/{name}"
            allowed = self.why(file, "read").status == 0
            ran = self.run_report("--", "cat", file).status == 0
            self.assertEqual(ran, allowed, name)

    def test_the_files_own_permissions(self):
        self.write("outside/closed", "x", 0o000)
        a = self.answers(f"{self.outside}/closed", "read", status=1)["read"]
        if self.uid:
            self.assertEqual(("EACCES", None), (a["permissions"], a["change"]))
            self.assertIn("no rule changes what the file's own permissions refuse", a["stuck"])
            self.assertEqual(f"{self.outside}/closed (a file)\n"
                             "read: refused by the file's own permissions, whatever a rule says\n"
                             f"  file    does not let uid {self.uid} (EACCES): see ls -ld {self.outside}/closed\n"
                             "  policy  if it did, this would be asked about\n"
                             "  rule    none names it\n", self.why(f"{self.outside}/closed", "read").out)
        else:
            self.assertIsNone(a["permissions"])

    def test_sensitive_presets_and_options(self):
        self.write("home/.ssh/id_rsa", "k")
        self.assertTrue(self.answers(f"{self.home}/.ssh/id_rsa", "read")["read"]["sensitive"])
        self.write("home/.gitconfig", "")
        self.assertEqual("ask", self.answers("~/.gitconfig", "read")["read"]["effect"])
        a = self.answers("--preset", "git", "~/.gitconfig", "read", status=0)["read"]
        self.assertEqual("preset git", a["rule"]["origin"])
        self.assertEqual("allow", self.answers("-r", "../outside", self.secret, "read", status=0)["read"]["effect"])
        a = self.answers("--deny", "../outside", self.secret, "read", status=1)["read"]
        self.assertEqual(("forbid", None), (a["effect"], a["change"]))

    def test_a_presets_refusal_and_our_own_files(self):
        a = self.answers("/etc/shadow", "read", status=1)["read"]
        self.assertEqual("deny", a["effect"])
        if self.uid:
            self.assertIn("no rule changes what the file's own permissions refuse", a["stuck"])
        else:
            self.assertEqual("warder policy allow read /etc/shadow", a["change"].removesuffix(" exact"))
        a = self.answers(f"{self.dir}/state/warder/audit.jsonl", "read", status=1)["read"]
        self.assertEqual("forbid", a["effect"])
        self.assertIn("warder's own files", a["stuck"])

    def test_symlinks_and_names_that_need_quoting(self):
        os.symlink(self.secret, f"{self.project}/link")
        self.assertTrue(self.why("link", "read").out.startswith(self.secret))
        odd = self.write("outside/a b'*?\\c\x1b[31m", "x")
        change = self.answers(odd, "read")["read"]["change"]
        self.shell(change)
        self.assertEqual("allow", self.answers(odd, "read", status=0)["read"]["effect"])
        self.assertEqual("ask", self.answers(f"{self.outside}/a b'XYc", "read", status=1)["read"]["effect"])
        self.assertNotIn("\x1b", self.why(odd).out)

    def test_what_is_not_there_and_sockets(self):
        self.assertIn("(does not exist)", self.why(f"{self.outside}/new", "create", status=1).out)
        path = f"{self.outside}/sock"
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(path)
            self.own(path)
            self.assertIn("connect", self.answers(path))
        self.assertNotIn("connect", self.answers(self.secret))

    def test_what_fails_anyway_asks_nothing(self):
        """As a run has it: of what is not there nothing is asked, but where it would be made."""
        absent, deep = f"{self.outside}/absent", f"{self.outside}/no/such"
        for path, access, program, asks in ((absent, "read", "cat", False), (absent, "list", "ls", False),
                                            (absent, "exec", "env", False), (absent, "delete", "rmdir", False),
                                            (absent, "create", "mkdir", True), (deep, "create", "mkdir", False)):
            with self.subTest(path=path, access=access):
                done = self.run_report("--", program, path)
                self.assertEqual(asks, bool(done.report["denials"]), done.report["denials"])
                told = self.why(path, access, status=1).out
                self.assertIn("(does not exist)", told)
                words = "asked about" if asks else "fails anyway, and nothing is asked"
                self.assertIn(f"{'x' if access == 'exec' else access}: {words}\n", told)
                self.assertEqual(not asks, self.answers(path, access)[access]["landlock"] == "absent")

    def test_what_can_not_be_looked_at_is_not_called_absent(self):
        closed = self.write("outside/closed/file", "x")
        os.chmod(os.path.dirname(closed), 0)
        self.addCleanup(os.chmod, os.path.dirname(closed), 0o700)
        told = self.why(closed, "read").out
        if self.uid:
            self.assertIn("(can't be looked at)\nread: refused by the file's own permissions", told)
        else:
            self.assertIn("(a file)", told)

    def test_the_last_lines_say_whose_word_it_was(self):
        key = self.write("home/.ssh/id_rsa", "k")
        done = self.run_report("--rule", f"deny r {self.secret}", "--", "cat", self.secret, key)
        self.assertIn(f"denied by your command line (deny r {self.secret})\n", done.err)
        self.assertRegex(done.err, r"; on the sensitive list; to allow: warder policy allow r \S+/\.ssh/id_rsa\n")
        denied, = [d for d in done.report["denials"] if d["path"] == self.secret]
        self.assertEqual(f"command line (deny r {self.secret})", denied["rule"])
        done = self.run_report("--deny", self.secret, "--", "cat", self.secret)
        self.assertIn(f"forbidden by your command line (forbid {self.secret})\n", done.err)

    def test_usage(self):
        for words in (["a", "b"], ["--nope"], ["a", "read", "c"], ["--last", "a"], ["--yes", "a"], [""]):
            with self.subTest(words):
                done = self.why(*words, status=2)
                self.assertRegex(done.err, r"\Awarder: [^\n]+\n\Z")
        self.assertIn("Usage", self.why("--help", status=0).out)
        self.assertLess(self.why("--help").out.count("\n"), 25)


@both_users
class Last(RunCase):
    def setUp(self):
        super().setUp()
        self.secret = self.write("outside/secret", "the secret\n")

    def last(self, *words, status=None, **more):
        done = self.native(WARDER, "why", "--last", *words, **more)
        if status is not None:
            self.assertStatus(done, status)
        return done

    def test_nothing_was_run_yet(self):
        self.assertIn("nothing was run yet", self.last(status=125).err)

    def test_each_denial_and_how_it_stands_now(self):
        self.run_plain("--", "sh", "-c", f"cat {self.secret}; echo > {self.outside}/new; exit 3")
        done = self.last(status=1, cwd=self.home)
        self.assertRegex(done.out, r"\Ash -c .*\(.*, exit 3, in .*/project\)\n")
        self.assertIn("1. cat was refused read (openat, 1×): nobody was asked\n", done.out)
        self.assertIn(f"change  warder policy allow read {self.secret}", done.out)
        self.assertIn("2. sh was refused write,create (openat, 1×)", done.out)
        self.native(WARDER, "policy", "allow", "rw", self.outside)
        done = self.last(status=0)
        self.assertIn("read: allowed", done.out)

    def test_json(self):
        self.run_plain("--", "cat", self.secret)
        out = json.loads(self.last("--json", status=1).out)
        d, = out["denials"]
        self.assertEqual(("read", "ask"), (d["denial"]["access"][0], d["now"][0]["answers"][0]["effect"]))
        self.assertEqual(["cat", self.secret], out["command"])

    def test_under_that_runs_own_rules(self):
        self.run_plain("--deny", self.outside, "--", "cat", self.secret)
        self.assertIn("forbidden", self.last(status=1).out)
        self.run_plain("--no-presets", "--preset", "system", "--", "cat", f"{self.project}/x", self.secret)
        self.last(status=1)

    def test_a_run_that_was_refused_nothing(self):
        self.run_plain("--", "true")
        self.assertIn("nothing was refused", self.last(status=0).out)

    def test_it_is_ours_alone_and_whole(self):
        self.run_plain("--", "cat", self.secret)
        path = f"{self.dir}/state/warder/last-report.json"
        first = os.stat(path).st_ino
        self.run_plain("--", "cat", self.secret, self.secret)
        self.assertNotEqual(first, os.stat(path).st_ino, "a new one in its place")
        self.assertIn("2×", self.last(status=1).out)
        self.assertEqual(0o600, os.stat(path).st_mode & 0o777)
        self.assertEqual(self.uid, os.stat(path).st_uid)
        self.assertEqual(["last-report.json"], [n for n in os.listdir(os.path.dirname(path)) if "last" in n])
        before = os.stat(path).st_mtime_ns
        self.run_plain("--", "no-such-command-here")
        self.assertEqual(before, os.stat(path).st_mtime_ns)
        done = self.run_plain("-r", self.dir, "--", "cat", path)
        self.assertNotEqual(0, done.status)
        with open(path, "w", encoding="utf-8") as f:
            f.write("[]")
        self.assertIn("it is no report", self.last(status=125).err)

    def test_permissions(self):
        if self.uid == 0:
            self.skipTest("root may read everything")
        file = self.write("project/closed", "x", 0o000)
        self.run_plain("--", "cat", file)
        self.assertIn("the file's own mode, owner or ACL, whatever a rule says", self.last(status=1).out)


if __name__ == "__main__":
    main()
