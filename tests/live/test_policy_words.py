#!/usr/bin/env python3
"""warder policy accept, edit, import, merge, show --effective: a person sees what is saved before it counts."""

import itertools
import json
import os
import random
import stat
import subprocess

from policy_help import PolicyCase, both_users, main
from run_help import WARDER


@both_users
class Broken(PolicyCase):
    def test_a_saved_policy_that_can_not_be_read_says_what_mends_it(self):
        for project in ([], ["--project"]):
            path = self.native(WARDER, "policy", *project, "path").out.strip()
            self.write(os.path.relpath(path, self.dir), "garbage\n", 0o600)
            mend = " ".join(["; to mend it: warder policy", *project, "edit"])
            commands = (["run", "--", "true"], ["agent", "--provider", "script", "-p", "x"], ["why", "/etc/passwd"], ["policy", *project, "show"],
                        ["policy", *project, "allow", "r", "/srv"], ["policy", *project, "forget", "/srv"])
            for command in commands:
                with self.subTest(command):
                    done = self.native(WARDER, *command)
                    self.assertIn(f"{path}:1:1: expected ", done.err)
                    self.assertIn(mend, done.err)
            os.unlink(path)

    def test_short_options_that_are_joined(self):
        done = self.native(WARDER, "run", "-qv", "--", "true")
        self.assertStatus(done, 125)
        self.assertIn("-qv: short options can't be joined: write -q and the others apart", done.err)


@both_users
class Accept(PolicyCase):
    def setUp(self):
        super().setUp()
        self.secret = self.write("outside/secret", "the secret\n")
        self.other = self.write("outside/other", "other\n")

    def propose(self, text):
        return self.write("project/.warder.policy", text)

    def may_read(self, path):
        return self.run_report("--", "cat", path).status == 0

    def test_a_proposal_opens_nothing_before_it_is_accepted(self):
        self.propose(f"allow r {self.outside}  # please\n")
        done = self.run_report("--", "cat", self.secret)
        self.assertNotEqual(0, done.status)
        self.assertIn("/project/.warder.policy proposes a policy, and 1 rule of it is not used; `warder policy accept`",
                      done.err)
        status, shown = self.answer("accept")
        self.assertEqual(0, status, shown)
        self.assertIn(f"+ allow r {self.outside}  # please\n", shown)
        self.assertIn("use these rules in this project? [y/N] ", shown)
        done = self.run_report("--", "cat", self.secret)
        self.assertStatus(done)
        self.assertNotIn(".warder.policy", done.err)
        self.assertIn(".accepted", json.dumps(done.report["policy"]))

    def test_no_is_no_and_nobody_is_no(self):
        self.propose(f"allow r {self.outside}\n")
        for typed in ("n\n", "\n", "\x04"):
            status, shown = self.answer("accept", typed=typed)
            self.assertEqual(1, status, shown)
        self.policy("accept", status=125)
        self.assertFalse(self.may_read(self.secret))
        self.policy("accept", "--yes")
        self.assertTrue(self.may_read(self.secret))
        self.assertIn("accepted already", self.policy("accept").out)

    def test_a_change_is_shown_again_and_the_old_text_counts_until_then(self):
        self.propose(f"allow r {self.secret}\n")
        self.policy("accept", "--yes")
        self.propose(f"allow r {self.secret}\nallow r {self.other}\n")
        done = self.run_report("--", "cat", self.secret)
        self.assertStatus(done)
        self.assertIn("has changed since you accepted it: what you accepted still counts; 1 new rule of it is not used; "
                      "`warder policy accept` shows what changed", done.err)
        self.assertFalse(self.may_read(self.other))
        status, shown = self.answer("accept")
        self.assertIn(f"+ allow r {self.other}\n", shown)
        self.assertNotIn(f"+ allow r {self.secret}", shown)
        self.assertTrue(self.may_read(self.other))

    def test_what_takes_away_counts_at_once(self):
        self.policy("allow", "r", self.outside)
        self.propose(f"deny r {self.secret}\nforbid {self.outside}/never\nask r {self.other}\nallow r /root\n")
        done = self.run_report("--", "cat", self.secret)
        self.assertNotEqual(0, done.status)
        self.assertTrue(self.may_read(self.other), "ask is not taken before it is accepted")

    def test_a_deny_that_is_new_leaves_what_was_accepted(self):
        self.propose(f"allow r {self.secret}\nallow r {self.outside}/x\n")
        self.policy("accept", "--yes")
        self.propose(f"allow r {self.secret}\nallow r {self.outside}/x\ndeny r {self.other}\n")
        done = self.run_report("--", "cat", self.secret)
        self.assertStatus(done)
        self.assertIn("what you accepted still counts, and so does what it newly refuses; `warder policy accept`", done.err)
        self.assertNotIn("not used", done.err)

    def test_a_deny_does_not_go_by_emptying_the_file(self):
        """What was accepted does not depend on a file that the command can write."""
        self.policy("allow", "r", self.outside)
        self.propose(f"deny r {self.secret}\n")
        self.policy("accept", "--yes")
        self.run_report("--", "sh", "-c", ": > .warder.policy; rm .warder.policy")
        self.assertFalse(os.path.exists(f"{self.project}/.warder.policy"))
        self.assertFalse(self.may_read(self.secret))
        status, shown = self.answer("accept")
        self.assertEqual(0, status, shown)
        self.assertIn(f"- deny r {self.secret}", shown)
        self.assertIn("the file is gone", shown)
        self.assertTrue(self.may_read(self.secret))
        self.policy("accept", status=1)

    def test_what_nobody_accepted_brings_a_bounded_number_of_rules(self):
        self.propose("".join(f"deny r /nowhere/{i}\n" for i in range(500)) + f"deny r {self.other}\n")
        done = self.run_report("--", "true")
        self.assertEqual(125, done.status)
        self.assertRegex(done.err, r"\.warder\.policy: more than 500 rules that nobody accepted; "
                                   r"`warder policy accept` accepts them, or make it shorter\n$")
        self.policy("accept", "--yes")
        self.assertStatus(self.run_report("--", "true"))
        self.propose("use system\n" * 90000)
        done = self.run_report("--", "true")
        self.assertStatus(done)
        self.assertRegex(done.err, r"\.warder\.policy:\d+:5: expected at most 100000 rules: .* is not used")

    def test_many_rules_are_not_weighed_each_against_each(self):
        self.propose("".join(f"deny r /x{i}\n" for i in range(40000)))
        self.policy("accept", "--yes")
        self.assertStatus(self.run_report("--", "true"))

    def test_a_file_without_an_end_is_not_read_to_its_end(self):
        with open(self.propose(""), "r+b") as f:
            f.truncate(1 << 40)
        done = self.run_report("--", "true")
        self.assertStatus(done)
        self.assertIn(".warder.policy: expected at most 1 MiB: the project's proposal is not used", done.err)

    def test_a_pattern_that_opens_the_sensitive_list_is_pointed_out(self):
        for rule, what in (("r ~/**", "/.ssh"), ("r /**", "/"), ("r ~/.ss?", "/.ssh"), ("rw ~/*", "/.ssh"),
                           ("rw ~/.bash*", "/.bash"), ("r ~/.ssh/id_*", "/.ssh"), ("r ~/.b*_hist*", "/.*_history"),
                           ("r ~/**/credentials", "/.ssh")):
            self.propose(f"allow {rule}\n")
            shown = self.answer("accept", typed="n\n")[1]
            self.assertRegex(shown, r"warder: allow .* (opens what )?is on the sensitive list", rule)
            self.assertIn(what, shown)
        for rule in ("r ~/src/*.c", "r ~/.sh?", "r ~/bashful*/x", "r ~/x*y"):
            self.propose(f"allow {rule}\n")
            self.assertNotIn("sensitive", self.answer("accept", typed="n\n")[1], rule)

    def test_odd_files_are_no_proposals(self):
        self.propose("allow r\n")
        done = self.run_report("--", "true")
        self.assertStatus(done)
        self.assertRegex(done.err, r"\.warder\.policy:1:\d+: .*the project's proposal is not used")
        self.assertIn("can't be accepted", self.policy("accept", status=1).err)
        os.unlink(f"{self.project}/.warder.policy")
        self.write("outside/rules", f"allow r {self.outside}\n")
        os.symlink(f"{self.outside}/rules", f"{self.project}/.warder.policy")
        self.assertStatus(self.run_report("--", "true"))
        self.policy("accept", status=1)
        os.unlink(f"{self.project}/.warder.policy")
        os.mkfifo(f"{self.project}/.warder.policy")
        self.assertStatus(self.run_report("--", "true"))

    def test_words_of_the_file_do_not_move_the_terminal(self):
        self.propose("allow r ~/x  # \x1b[2Jhidden\u202e\n")
        status, shown = self.answer("accept", typed="n\n")
        self.assertNotIn("\x1b", shown)
        self.assertNotIn("\u202e", shown)

    def test_sensitive_things_are_pointed_out(self):
        self.propose("allow r ~/.ssh\nallow r ~/.config\nallow r ~/plain\n")
        status, shown = self.answer("accept", typed="n\n")
        self.assertIn("/.ssh is on the sensitive list", shown)
        self.assertIn("/.config opens what is on the sensitive list", shown)
        self.assertNotIn("plain opens", shown)
        self.assertNotIn("plain is", shown)

    def test_not_with_a_policy_of_its_own(self):
        self.propose(f"allow r {self.outside}\n")
        self.policy("accept", "--yes")
        rules = self.write("rules", "")
        self.assertNotEqual(0, self.run_report("--policy", rules, "--", "cat", self.secret).status)


@both_users
class Missing(PolicyCase):
    """A path that is not there: a slip of the pen is said, what is to come is not."""

    def setUp(self):
        super().setUp()
        self.write("project/notes/one.txt", "one\n")
        self.write("project/build1/x")
        self.write("project/notes/what*/x")
        self.told = [
            (("-r", "./note"), "/note", "/notes"),
            (("-r", "./ntoes/one.txt"), "/ntoes/one.txt", "/notes/one.txt"),
            (("-r", "./ntoes/two.txt"), "/ntoes/two.txt", None),
            (("-x", "bin/nothing"), "/bin/nothing", None),
            (("-w", "nots"), "/nots", "/notes"),
            (("-w", "nowhere/new"), "/nowhere/new", None),
            (("--deny", "notse"), "/notse", "/notes"),
            (("--rule", "allow r nodes/*.txt"), "/nodes", "/notes"),
            (("--rule", "ask r notes/onn.txt exact"), "/notes/onn.txt", "/notes/one.txt"),
        ]

    def lines(self, path, near, whose=""):
        mean = f"; did you mean '{self.project}{near}'?" if near else ""
        return f"{self.project}{path}{whose} does not exist{mean}\n"

    def test_on_the_command_line(self):
        for words, path, near in self.told:
            done = self.run_plain(*words, "--", "true")
            self.assertStatus(done)
            self.assertEqual(done.err, "warder: " + self.lines(path, near, ", which a rule of the command line is about,"), words)
            self.assertEqual(self.run_plain("-q", *words, "--", "true").err, "")

    def test_what_is_to_come_is_not_said(self):
        for words in (("-w", "new"), ("-w", "build2"), ("--deny", ".env"), ("-r", "notes"), ("-r", "notes/one.txt"),
                      ("--rule", "allow r **/*.none"), ("--rule", "allow r notes/*.none"),
                      ("--rule", r"allow r notes/what\*/*.none"), ("--rule", r"deny r notes/what\*/**")):
            self.assertEqual(self.run_plain(*words, "--", "true").err, "", words)

    def test_saved(self):
        done = self.policy("allow", "r", "note")
        self.assertEqual(done.err, "warder: warning: " + self.lines("/note", "/notes"))
        self.assertEqual(self.policy("allow", "rw", "new").err, "")
        self.assertEqual(self.policy("forbid", "what/ever/it/is").err, "warder: warning: " + self.lines("/what/ever/it/is", None))
        checked = self.policy("check", status=None).out
        for path, near in (("/note", "/notes"), ("/new", None)):
            self.assertIn(": warning: " + self.lines(path, near), checked)
        self.assertEqual(self.run_plain("--", "true").err, "")


@both_users
class Modes(PolicyCase):
    """As ssh does with its configuration: what others may write to is nobody's word."""

    @staticmethod
    def text_of(path):
        with open(path, encoding="utf-8") as f:
            return f.read()

    def test_what_others_may_write_to_is_refused(self):
        secret = self.write("outside/secret", "the secret\n")
        self.env["VISUAL"] = "true"
        for words in (("allow", "r", secret), ("allow", "--project", "r", secret)):
            self.policy(*words)
            path = self.policy("path", *words[1:2] if len(words) > 3 else ()).out.strip()
            before = self.text_of(path)
            for mode in (0o666, 0o620, 0o602):
                os.chmod(path, mode)
                told = f"warder: {path}: others may write to it: look at what it says, then chmod go-w it\n"
                done = self.native(WARDER, "run", "--", "cat", secret)
                self.assertEqual((done.status, done.out, done.err), (125, "", told), oct(mode))
                for more in (("allow", "r", "/a"), ("edit",), ("show",)):
                    if len(words) > 3:
                        more = (more[0], "--project", *more[1:])
                    done = self.policy(*more, status=125)
                    self.assertEqual((done.out, done.err), ("", told), more)
                self.assertEqual(self.text_of(path), before)
            for mode in (0o644, 0o600, 0o444):
                os.chmod(path, mode)
                self.assertStatus(self.run_report("--", "cat", secret))
            os.chmod(path, 0o600)
            self.policy("forget", *words[1:-2], secret)

    def test_a_named_file_may_be_anybodys(self):
        secret = self.write("outside/secret", "the secret\n")
        rules = self.write("outside/rules", f"use system\nallow r {secret}\n")
        os.chmod(rules, 0o666)
        self.assertStatus(self.run_report("--policy", rules, "--", "cat", secret))


@both_users
class Edit(PolicyCase):
    def edit(self, script, status=0, **more):
        editor = self.write("bin/editor", f"#!/bin/sh\n{script}\n", 0o755)
        self.env["VISUAL"] = editor
        return self.policy("edit", status=status, **more)

    def draft(self):
        return self.policy("path").out.strip() + ".edit"

    def test_saved_when_it_reads_well(self):
        self.policy("allow", "r", "/a")
        done = self.edit('echo "allow r /b  # mine" >> "$1"')
        self.assertEqual("+ allow r /b  # mine\n", done.out)
        self.assertEqual(["allow r /a", "allow r /b"], self.rules())
        self.assertFalse(os.path.exists(self.draft()))
        self.assertEqual(0o600, stat.S_IMODE(os.stat(self.draft()[:-5]).st_mode))
        self.assertEqual("nothing was changed\n", self.edit("true").out)

    def test_without_a_terminal_it_says_what_to_do(self):
        self.env.pop("VISUAL", None)
        self.env.pop("EDITOR", None)
        done = self.policy("edit", status=125, stdin=subprocess.DEVNULL)
        self.assertEqual(done.err, "warder: there is no terminal for vi: warder policy allow, deny and forget need none; or "
                                   "set VISUAL to an editor that needs none\n")
        self.assertFalse(os.path.exists(self.draft()))
        done = self.edit("exit 1", status=1, stdin=subprocess.DEVNULL)
        self.assertEqual(done.err, "warder: the editor ended with status 1 (there is no terminal: warder policy allow, deny and "
                                   "forget need none); the policy is unchanged\n")
        done = self.edit('chmod 666 "$1"; echo "allow r /a" >> "$1"', stdin=subprocess.DEVNULL)
        self.assertEqual(["allow r /a"], self.rules())
        self.assertEqual(0o600, stat.S_IMODE(os.stat(self.draft()[:-5]).st_mode))

    def test_nothing_is_lost_on_an_error(self):
        self.policy("allow", "r", "/a")
        done = self.edit('echo "allow q q /b" >> "$1"', status=1)
        self.assertRegex(done.err, r"\Awarder: [^\n]*policy:2:\d+: [^\n]*unchanged[^\n]*goes on with it\n\Z")
        self.assertEqual(["allow r /a"], self.rules())
        done = self.edit("sed -i 's/q q/r/' \"$1\"")
        self.assertIn("going on", done.err)
        self.assertEqual(["allow r /a", "allow r /b"], self.rules())

    def test_all_errors_are_told_at_once(self):
        done = self.edit('printf "allow q q /b\nallow r /c\nnonsense\n" >> "$1"', status=1)
        self.assertRegex(done.err, r"\Awarder: [^\n]*policy:1:\d+: [^\n]*\nwarder: [^\n]*policy:3:\d+: [^\n]*\n"
                                   r"warder: 2 errors; the policy is unchanged[^\n]*goes on with it\n\Z")

    def test_an_editor_that_fails_or_is_not_there(self):
        for script, word in (("echo 'allow r /b' >> \"$1\"; exit 3", "status 3"), ("kill -9 $$", "status 137")):
            done = self.edit(script, status=1)
            self.assertIn(word, done.err)
            self.assertEqual([], self.rules())
        self.edit(": > $1")
        self.env["VISUAL"] = "/no/such/editor"
        done = self.policy("edit", status=1)
        self.assertIn("the policy is unchanged\n", done.err)
        self.assertNotIn("your text", done.err)
        self.assertFalse(os.path.exists(self.draft()))

    def leftovers(self):
        policy = self.draft()[:-len(".edit")]
        return sorted(n for n in os.listdir(os.path.dirname(policy)) if n.startswith("policy.edit"))

    def test_an_editor_that_never_was_drops_no_rule_later(self):
        self.env["VISUAL"] = "nosuch"
        self.policy("edit", status=1)
        self.assertEqual([], self.leftovers())
        self.policy("forbid", "/s")
        done = self.edit("true")
        self.assertEqual("", done.err)
        self.assertEqual(["forbid /s"], self.rules())

    def test_a_kept_text_does_not_overwrite_what_was_saved_since(self):
        self.edit('echo "allow r /a" >> "$1"; exit 3', status=1)
        self.policy("forbid", "/s")
        done = self.edit('echo "allow r /b" >> "$1"')
        self.assertRegex(done.err, r"changed since an edit that was not saved: its text is in \S+policy\.edit\.1 now")
        self.assertEqual(["forbid /s", "allow r /b"], self.rules())
        self.assertEqual(["policy.edit.1"], self.leftovers())
        self.assertEqual("allow r /a\n", self.read(self.draft() + ".1"))

    def test_a_second_text_put_aside_leaves_the_first(self):
        for name in "ab":
            self.edit(f'echo "allow r /{name}" > "$1"; exit 3', status=1)
            self.policy("forbid", f"/s{name}")
        self.edit("true")
        self.assertEqual(["policy.edit.1", "policy.edit.2"], self.leftovers())
        self.assertEqual("allow r /b\n", self.read(self.draft() + ".2"))

    def test_new_rules_that_open_sensitive_things_are_pointed_out(self):
        self.policy("allow", "r", "~/.ssh")
        done = self.edit('echo "allow r ~/.config" >> "$1"')
        self.assertRegex(done.err, r"\Awarder: allow r \S+/\.config opens what is on the sensitive list: [^\n]+\n\Z")

    def test_a_text_of_unknown_base_is_put_aside(self):
        self.policy("forbid", "/s")
        self.write(self.draft())
        self.edit("true")
        self.assertEqual(["forbid /s"], self.rules())

    def test_a_preset_that_is_not_there(self):
        done = self.edit('echo "use gti" >> "$1"', status=1)
        self.assertRegex(done.err, r"policy:1:5: expected a preset \(")

    def test_editors_that_write_a_new_file_and_words_in_the_variable(self):
        self.env["EDITOR"] = "sh -c 'printf \"allow r /n\\n\" > \"$1.tmp\"; mv \"$1.tmp\" \"$1\"' --"
        self.policy("edit")
        self.assertEqual(["allow r /n"], self.rules())

    def test_changed_meanwhile(self):
        done = self.edit(f'echo "allow r /b" >> "$1"; {WARDER} policy allow r /c >/dev/null', status=1)
        self.assertIn("changed meanwhile", done.err)
        self.assertEqual(["allow r /c"], self.rules())
        self.assertIn("allow r /b", self.read(self.draft()))

    def test_the_projects(self):
        self.policy("--project", "allow", "r", "/p")
        editor = self.write("bin/editor", "#!/bin/sh\necho 'deny r /q' >> \"$1\"\n", 0o755)
        self.env["VISUAL"] = editor
        self.policy("--project", "edit")
        self.assertEqual(["allow r /p", "deny r /q"], self.rules())


@both_users
class Change(PolicyCase):
    def test_a_forbid_has_to_be_forgotten_first(self):
        self.policy("forbid", "~/.ssh")
        for effect in ("allow", "ask", "deny"):
            done = self.policy(effect, "~/.ssh", status=1)
            self.assertRegex(done.err, r"\Awarder: \S+policy:1: forbid \S+: no other rule overrides it, and nothing was "
                                       r"saved; [^\n]*: warder policy forget ~/.ssh\n\Z")
        self.assertEqual(1, len(self.rules()))
        self.policy("forget", "~/.ssh")
        self.assertRegex(self.policy("forget", "~/.ssh", status=1).out, r"\Ano such rule is in \S+policy\n\Z")
        self.policy("allow", "r", "~/.ssh")

    def test_a_rule_that_opens_sensitive_things_says_so(self):
        done = self.policy("allow", "r", "~")
        self.assertRegex(done.err, r"\Awarder: allow r \S+ opens what is on the sensitive list: \S+ and \d+ more\n\Z")
        self.assertIn("/.ssh is on the sensitive list\n", self.policy("allow", "r", "~/.ssh").err)
        self.write("home/plain")
        for words in (("allow", "r", "~/plain"), ("deny", "~/.ssh"), ("allow", "list", "~", "exact")):
            self.assertEqual("", self.policy(*words).err, words)


@both_users
class Import(PolicyCase):
    TEXT = "allow r ~/a  # who\n\n# a heading\nallow  rw   ~/b\nuse git\ndeny r ~/a/b exact # no\n"

    def test_many_lines_are_not_compared_each_with_each(self):
        rules = "".join(f"allow r /nowhere/{i}\n" for i in range(40000))
        self.policy("import", "--yes", self.write("outside/many", rules))
        self.assertIn("nothing new", self.policy("import", "--yes", self.write("outside/many", rules)).out)

    def test_shows_a_diff_and_asks(self):
        self.policy("allow", "r", "/kept")
        file = self.write("rules", self.TEXT)
        status, shown = self.answer("import", file)
        self.assertEqual(0, status, shown)
        self.assertIn("+ allow r ~/a  # who\n+ allow rw ~/b\n+ use git\n+ deny r ~/a/b exact  # no\n", shown)
        self.assertNotIn("kept", shown)
        self.assertEqual("allow r /kept", self.rules()[0])
        self.assertEqual("nothing new: the policy says all of it already\n", self.policy("import", file).out)

    def test_no_saves_nothing(self):
        file = self.write("rules", self.TEXT)
        self.assertEqual(1, self.answer("import", file, typed="n\n")[0])
        self.assertIn("--yes", self.policy("import", file, status=125).err)
        self.assertEqual([], self.rules())
        self.policy("import", "--yes", file)
        self.assertIn(f"allow rw {self.home}/b", self.rules())

    def test_from_a_pipe_the_answer_comes_from_the_terminal(self):
        reading, writing = os.pipe()
        os.write(writing, b"y\nallow r /x\n"[2:])
        os.close(writing)
        status, shown = self.answer("import", "-", stdin=reading)
        os.close(reading)
        self.assertEqual(0, status, shown)
        self.assertEqual(["allow r /x"], self.rules())

    def test_bad_text_saves_nothing_and_is_named(self):
        for text, where in (("allow r /a\nallow r\n", r":2:\d+: "), ('{"x": 1}', ": 'x' is no member"),
                            ('{"pathBeneath":', r":1:\d+: expected JSON")):
            file = self.write("rules", text)
            done = self.policy("import", "--yes", file, status=1)
            self.assertRegex(done.err, rf"\Awarder: [^\n]*{where}[^\n]*\n\Z")
            self.assertEqual([], self.rules())
        self.policy("import", "/no/such", status=125)
        self.policy("import", status=2)

    def test_a_preset_that_is_not_there_is_saved_by_no_word(self):
        file = self.write("rules", "allow r /a\nuse git gti\n")
        wrong = r"rules:2:9: expected a preset \([^\n]*git[^\n]*\), not 'gti'"
        self.assertRegex(self.policy("import", "--yes", file, status=1).err, wrong)
        self.assertEqual([], self.rules())
        done = self.policy("merge", file, status=125)
        self.assertRegex(done.err, wrong)
        self.assertEqual("", done.out)
        self.write("project/.warder.policy", "use gti\n")
        self.assertRegex(self.policy("accept", "--yes", status=1).err, r"\.warder\.policy:1:5: expected a preset")
        self.assertStatus(self.run_report("--", "true"))

    def test_relative_paths_are_the_projects(self):
        file = self.write("rules", "allow rwx .\nallow r ./sub\ndeny r **/.env\nallow r \"a b\"\n")
        self.policy("import", "--yes", file)
        text = self.read(self.policy("path").out.strip())
        self.assertEqual(f"allow rwx {self.project}\nallow r {self.project}/sub\ndeny r {self.project}/**/.env\n"
                         f"allow r {self.project}/\"a b\"\n", text)
        self.policy("--project", "import", "--yes", file)
        self.assertIn("allow rwx .\n", self.read(self.policy("--project", "path").out.strip()))

    def test_landlockconfig(self):
        """The example of its own repository (the ports are not ours)."""
        file = self.write("c.json", json.dumps({
            "abi": 5, "variable": [{"name": "tmp", "literal": ["/tmp", "/var/tmp"]}],
            "ruleset": [{"handledAccessFs": ["abi.all"], "handledAccessNet": ["bind_tcp"]}],
            "pathBeneath": [{"allowedAccess": ["abi.read_execute"], "parent": [".", "/bin/", "/usr", "/a$$b*"]},
                            {"allowedAccess": ["abi.read_write"], "parent": ["${tmp}/x", "/srv"]},
                            {"allowedAccess": ["read_file", "make_reg", "make_dir"], "parent": ["/mnt"]}],
            "netPort": [{"allowedAccess": ["bind_tcp"], "port": [80, 443]}]}))
        done = self.policy("import", "--yes", file)
        bin_real = os.path.realpath("/bin")
        self.assertEqual({f"allow read,list,exec,move {self.project}", f"allow read,list,exec,move {bin_real}",
                          "allow read,list,exec,move /usr", "allow read,list,exec,move /a$b\\*",
                          "allow read,list,write,create,delete,move,meta,ioctl /tmp/x",
                          "allow read,list,write,create,delete,move,meta,ioctl /var/tmp/x",
                          "allow read,list,write,create,delete,move,meta,ioctl /srv", "allow read /mnt"},
                         set(self.rules()))
        self.assertIn("not taken: /mnt: make_dir,make_reg alone", done.err.replace(", ", ",").replace("make_reg,make_dir", "make_dir,make_reg"))
        self.assertIn("ports", done.err)
        self.assertRegex(self.read(self.policy("path").out.strip()), r"# \d{4}-\d\d-\d\d imported from .*c\.json\n")

    def test_what_the_schema_does_not_have_is_named_by_its_place(self):
        beneath = {"allowedAccess": ["read_file"], "parent": ["/x"]}
        bad = {
            "pathBeneath[0].allowedAccess[1]: expected a right": {"pathBeneath": [dict(beneath, allowedAccess=["execute", "fly"])]},
            "needs \"abi\"": {"pathBeneath": [dict(beneath, allowedAccess=["abi.all"])]},
            "pathBeneath[0]: 'mode' is no member": {"pathBeneath": [dict(beneath, mode=1)]},
            "pathBeneath[0].parent: expected an array": {"pathBeneath": [dict(beneath, parent="/x")]},
            "pathBeneath[0].parent[0]: there is no variable 'v'": {"pathBeneath": [dict(beneath, parent=["${v}"])]},
            "pathBeneath[0].parent[0]: expected a variable": {"pathBeneath": [dict(beneath, parent=["${v"])]},
            "variable[0]: expected \"name\"": {"variable": [{"name": "1x"}]},
            "abi: expected a number": {"abi": 0, "ruleset": [{"scoped": ["signal"]}]},
            "ruleset[0].scoped[0]: 'all' is no word": {"ruleset": [{"scoped": ["all"]}]},
            "netPort[0].port[0]": {"netPort": [{"allowedAccess": ["bind_tcp"], "port": [-1]}]},
            "expected variable, ruleset": {"abi": 3},
            "at most 10000 paths": {"variable": [{"name": "v", "literal": [str(i) for i in range(200)]}, {"name": "none"}],
                                    "pathBeneath": [dict(beneath, parent=["/${v}${v}${v}${v}${none}"])]},
        }
        for said, config in bad.items():
            with self.subTest(said):
                done = self.policy("import", "--yes", self.write("c.json", json.dumps(config)), status=1)
                self.assertIn(said, done.err)
        twice = '{"pathBeneath":[{"parent":["/x"],"parent":["/y"],"allowedAccess":["execute"]}]}'
        self.assertIn("there twice", self.policy("import", "--yes", self.write("c.json", twice), status=1).err)
        nul = '{"pathBeneath":[{"parent":["/home\\u0000/x"],"allowedAccess":["read_file"]}]}'
        self.assertIn("NUL", self.policy("import", "--yes", self.write("c.json", nul), status=1).err)
        self.assertEqual([], self.rules())


class Merge(PolicyCase):
    def merge(self, *texts):
        files = [self.write(f"m{i}", t) for i, t in enumerate(texts)]
        return self.policy("merge", *files).out

    def test_joins(self):
        self.assertEqual("use git  # a\nuse node  # a\nallow rw ~/x  # me; you\ndeny r ~/x\nallow list ~/x exact\n",
                         self.merge("allow r ~/x # me\nuse node git # a\ndeny r ~/x\n",
                                    "allow w ~/x # you; me\nallow list ~/x exact\nuse git\n").replace(
                             "allow list ~/x exact\ndeny r ~/x\n", "deny r ~/x\nallow list ~/x exact\n"))

    def test_associative_and_idempotent(self):
        random.seed(7)
        paths = ["/a", "~/b", ".", "**/.env", '"c d"', "/a/b"]

        def text():
            lines = []
            for _ in range(random.randrange(12)):
                lines.append(f"{random.choice(['allow', 'deny', 'ask', 'forbid'])} "
                             f"{random.choice(['', 'r', 'rw', 'read,exec'])} {random.choice(paths)}"
                             f"{random.choice(['', ' exact'])}{random.choice(['', ' # n' + str(random.randrange(30)), ' # p; q'])}")
            return "\n".join(lines + random.choice([[], ["use git  # z"], ["use go git"]])) + "\n"
        for _ in range(8):
            a, b, c = text(), text(), text()
            left = self.merge(self.merge(a, b), c)
            self.assertEqual(left, self.merge(a, self.merge(b, c)))
            self.assertEqual(left, self.merge(c, a, b))
            self.assertEqual(left, self.merge(left, left))

    def test_decides_as_the_files_together(self):
        d = self.outside
        one, two = f"allow r {d}\ndeny r {d}/s\n", f"allow rx {d}/s exact\nallow w {d}/s\n"
        merged = self.write("merged", self.merge(one, two))
        files = [self.write("one", one), self.write("two", two)]
        for path, access in itertools.product((f"{d}/x", f"{d}/s", f"{d}/s/x"), ("read", "exec", "write")):
            apart = self.native(WARDER, "why", "--json", "--policy", files[0], "--policy", files[1], path, access)
            joined = self.native(WARDER, "why", "--json", "--policy", merged, path, access)
            self.assertEqual([a["effect"] for a in json.loads(apart.out)["answers"]],
                             [a["effect"] for a in json.loads(joined.out)["answers"]], (path, access))

    def test_results_of_replays(self):
        """The same as replaying them together, in whatever order and steps; and never with policies."""
        secret = self.write("outside/secret", "x")
        traces = [os.path.join(self.dir, f"t{i}.jsonl") for i in range(3)]
        for i, trace in enumerate(traces):
            self.native(WARDER, "record", "-o", trace, "--", "sh", "-c", f"cat {secret}; echo > {self.outside}/new{i}")
        parts = []
        for i, trace in enumerate(traces):
            parts.append(self.write(f"part{i}", self.native(WARDER, "replay", "--partial", trace).out))
        together = self.native(WARDER, "replay", "--partial", *traces).out
        self.assertIn("secret", together)
        self.assertEqual(together, self.policy("merge", *parts).out)
        two = self.write("two", self.policy("merge", parts[2], parts[0]).out)
        self.assertEqual(together, self.policy("merge", parts[1], two).out)
        for mixed in ([parts[0], self.write("rules", "allow r /x\n")], [self.write("rules", "allow r /x\n"), parts[0]]):
            self.assertIn("can't be merged with each other", self.policy("merge", *mixed, status=125).err)

    def test_errors(self):
        self.policy("merge", "/no/such", status=125)
        self.assertIn(":1:", self.policy("merge", self.write("bad", "allow\n"), status=125).err)
        self.policy("merge", status=2)


@both_users
class Effective(PolicyCase):
    def test_none_is_said_and_not_to_scripts(self):
        done = self.policy("show")
        self.assertEqual("", done.out)
        self.assertRegex(done.err, r"\Awarder: no rule is saved yet, .*policy show --effective [^\n]*\n\Z")
        self.assertEqual("", self.policy("show", "--json").err)
        self.assertEqual("", self.policy("show", "--effective").err)
        self.policy("allow", "r", self.outside)
        self.assertEqual("", self.policy("show").err)

    def test_where_from_since_when_and_when_it_last_decided(self):
        secret = self.write("outside/secret", "x")
        file = self.policy("path").out.strip()
        self.write(os.path.relpath(file, self.dir), f"# mine\ndeny r {secret}  # 2020-01-02 /usr/bin/cat openat\n", 0o600)
        self.run_plain("--", "cat", secret)
        rules = {r["rule"]: r for r in json.loads(self.policy("show", "--effective", "--json").out)["rules"]}
        rule = rules[f"deny r {secret}"]
        self.assertEqual((2, "2020-01-02", file), (rule["line"], rule["since"], rule["origin"]))
        self.assertRegex(rule["last"], r"^\d{4}-\d\d-\d\dT")
        self.assertIsNone(rules["allow rx /usr"]["since"])
        text = self.policy("show", "--effective").out
        self.assertRegex(text, rf"deny r {secret} .*# .*/policy:2, since 2020-01-02, last decided \d{{4}}-")
        # The line moves; what it decided stays its own.
        self.write(os.path.relpath(file, self.dir), f"\n\n\ndeny r {secret}\n", 0o600)
        rules = {r["rule"]: r for r in json.loads(self.policy("show", "--effective", "--json").out)["rules"]}
        self.assertIsNotNone(rules[f"deny r {secret}"]["last"])
        self.assertTrue(rules[f"deny r {secret}"]["since"].endswith(" or before"))

    def test_a_broken_audit_is_passed_over(self):
        self.run_plain("--", "true")
        with open(f"{self.dir}/state/warder/audit.jsonl", "ab") as f:
            f.write(b'{"rule":"\xff\n{"rule":"/x:1","path":3}\n\0\n[[[')
        self.policy("show", "--effective")


if __name__ == "__main__":
    main()
