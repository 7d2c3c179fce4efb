"""warder run --session NAME: runs of one name share answers, refusals and the temporary directory."""

import json
import os
import subprocess

from policy_help import PYTHON
from run_help import TIMEOUT, WARDER, RunCase, Talk, allow, both_users, deny, main


@both_users
class Session(RunCase):
    def setUp(self):
        super().setUp()
        self.secret = self.write("outside/secret", "found\n")

    def session(self, *args):
        return self.native(WARDER, "session", *args)

    def listed(self):
        done = self.session("list", "--json")
        self.assertStatus(done)
        return {s["name"]: s for s in json.loads(done.out)["sessions"]}

    def test_an_answer_holds_in_the_next_run(self):
        done = self.hold("--session", "n", "--", "cat", self.secret, answer=allow("session"))
        self.assertStatus(done)
        done = self.hold("--session", "n", "--", "cat", self.secret, answer=deny)
        self.assertStatus(done)
        self.assertNothingAsked(done)
        self.assertEqual(done.out, "found\n")

    def test_once_is_once(self):
        self.assertStatus(self.hold("--session", "n", "--", "cat", self.secret, answer=allow("once")))
        done = self.hold("--session", "n", "--", "cat", self.secret, answer=deny)
        self.assertStatus(done, 1)
        self.assertEqual(len([e for e in done.events if e["event"] == "ask"]), 1)

    def test_a_refusal_holds_in_the_next_run(self):
        self.assertStatus(self.hold("--session", "n", "--", "cat", self.secret, answer=deny), 1)
        done = self.hold("--session", "n", "--", "cat", self.secret)
        self.assertStatus(done, 1)
        self.assertNothingAsked(done)

    def test_other_names_share_nothing(self):
        self.hold("--session", "n", "--", "cat", self.secret, answer=allow("session"))
        for args in (("--session", "m"), ()):
            done = self.hold(*args, "--", "cat", self.secret, answer=deny)
            self.assertStatus(done, 1)

    def test_the_temporary_directory_stays(self):
        done = self.run_plain("--session", "n", "--", "sh", "-c", "echo kept >$TMPDIR/f; echo $TMPDIR")
        self.assertStatus(done)
        place = done.out.strip()
        done = self.run_plain("--session", "n", "--", "sh", "-c", "cat $TMPDIR/f; echo $TMPDIR")
        self.assertEqual(done.out, f"kept\n{place}\n")
        self.assertEqual(self.listed()["n"]["tmpdir"], place)
        self.assertStatus(self.session("end", "n"))
        self.assertFalse(os.path.exists(place))
        self.assertEqual(self.listed(), {})

    def test_a_temporary_directory_that_was_taken_is_not_used(self):
        place = self.run_plain("--session", "n", "--", "sh", "-c", "echo $TMPDIR").out.strip()
        os.rmdir(place)
        os.symlink(self.outside, place)
        done = self.run_plain("--session", "n", "--", "sh", "-c", "echo $TMPDIR")
        self.assertStatus(done)
        self.assertNotEqual(done.out.strip(), place)
        self.assertFalse(os.path.islink(done.out.strip()))
        self.assertStatus(self.session("end", "n"))
        self.assertTrue(os.path.exists(self.secret))

    def test_whatever_a_command_left_is_removed(self):
        """Deeper than any path is long, closed to itself, and with links that lead out."""
        script = ("import os\nos.chdir(os.environ['TMPDIR'])\nprint(os.getcwd())\n"
                  "os.makedirs('closed/in/side')\nos.makedirs('half/d')\n"
                  f"os.symlink({self.outside!r}, 'half/d/link')\nos.symlink({self.outside!r}, 'link')\n"
                  "os.chmod('closed/in', 0)\nos.chmod('closed', 0)\nos.chmod('half/d', 0o500)\n"
                  "for i in range(800): os.mkdir('d' * 100); os.chdir('d' * 100)\n"
                  "open('f', 'w').close()\n")
        for named in (["--session", "n"], []):
            done = self.run_plain(*named, "--", PYTHON, "-c", script)
            self.assertStatus(done)
            self.assertEqual(done.err, "")
            place = done.out.strip()
            if named:
                done = self.session("end", "n")
                self.assertStatus(done)
                self.assertEqual(done.err, "")
            self.assertFalse(os.path.lexists(place), place)
        self.assertTrue(os.path.exists(self.secret))

    def test_a_mode_that_a_command_left_is_put_right(self):
        for mode in ("755", "777", "0"):
            place = self.run_plain("--session", "n", "--", "sh", "-c",
                                   f"echo $TMPDIR; chmod {mode} $TMPDIR").out.strip()
            done = self.run_plain("--session", "n", "--", "sh", "-c",
                                  "echo $TMPDIR; stat -c %a $TMPDIR; touch $TMPDIR/f")
            self.assertEqual(done.out, f"{place}\n700\n")
            self.assertIn(f"with mode 0{mode:0>3}; it is 0700 again", done.err)
            self.assertEqual(self.run_plain("--session", "n", "--", "true").err, "")
            self.assertStatus(self.run_plain("--session", "n", "--", "sh", "-c", f"chmod {mode} $TMPDIR"))
            self.assertStatus(self.session("end", "n"))
            self.assertFalse(os.path.lexists(place))

    def test_an_answer_settles_what_waits_in_another_run(self):
        waits, asked = Talk(self, ["--session", "n", "--", "cat", self.secret]), None
        waits.ask()
        self.report_file += ".second"
        asked = Talk(self, ["--session", "n", "--", "cat", self.secret])
        asked.answer(asked.ask(), answer="allow", lifetime="session")
        self.assertEqual(asked.finish().out, "found\n")
        self.assertEqual(waits.next("cancel")["reason"], "covered")
        self.report_file = self.report_file[:-len(".second")]
        self.assertEqual(waits.finish().out, "found\n")

    def test_a_preset_is_shared_too(self):
        config = self.write("home/.gitconfig", "[user]\n\tname = x\n")
        first = Talk(self, ["--session", "n", "--", "cat", config])
        q = first.ask()
        number = [i for i, s in enumerate(q["scopes"]) if s["kind"] == "preset"]
        self.assertTrue(number, q["scopes"])
        first.answer(q, answer="allow", scope=number[0], lifetime="session")
        self.assertStatus(first.finish())
        done = self.hold("--session", "n", "--", "cat", config, answer=deny)
        self.assertStatus(done)
        self.assertNothingAsked(done)

    def test_what_is_in_use_is_not_ended(self):
        run = Talk(self, ["--session", "n", "--", "cat", self.secret])
        q = run.ask()
        self.assertTrue(self.listed()["n"]["in_use"])
        done = self.session("end", "n")
        self.assertStatus(done, 1)
        self.assertIn("a run uses the session n", done.err)
        run.answer(q, answer="deny")
        run.finish()
        self.assertStatus(self.session("end", "n"))
        done = self.session("end", "n")
        self.assertStatus(done, 1)
        self.assertIn("no session n", done.err)

    def test_a_link_that_the_command_made_opens_nothing(self):
        """What was granted by name is not the command's to point elsewhere."""
        given = self.write("outside/given", "given\n")
        script = "cat link; rm link; ln -s ../outside/secret link"
        os.symlink("../outside/given", self.own(self.project) + "/link")
        self.hold("--session", "n", "--", "sh", "-c", script, answer=allow("session"))
        done = self.hold("--session", "n", "--", "cat", "link", answer=deny)
        self.assertStatus(done, 1)
        self.assertEqual(done.out, "")
        self.assertTrue(os.path.exists(given))

    def test_the_tree_can_not_write_the_answers(self):
        answers = os.path.join(self.dir, "state", "warder", "named", "n", "answers")
        script = f"echo 'allow rwx /' >{answers}; cat {answers}; ls {os.path.dirname(answers)}"
        done = self.hold("--session", "n", "-w", "/", "--", "sh", "-c", script)
        self.assertEqual(done.out, "")
        self.assertFalse(os.path.exists(answers))

    def test_a_broken_file_is_told(self):
        self.hold("--session", "n", "--", "cat", self.secret, answer=allow("session"))
        answers = os.path.join(self.dir, "state", "warder", "named", "n", "answers")
        with open(answers, "a", encoding="utf-8") as f:
            f.write("allwo r /x\n")
        done = self.run_plain("--session", "n", "--", "true")
        self.assertStatus(done, 125)
        self.assertRegex(done.err, r"/named/n/answers:\d+:1: ")

    def test_names(self):
        for name in ("", ".", "..", "a/b", "-x y", "n" * 65):
            done = self.run_plain(f"--session={name}", "--", "true")
            self.assertStatus(done, 125)
            self.assertIn("name", done.err)
        self.assertStatus(self.run_plain("--session", "A.b_c-9", "--", "true"))
        self.assertEqual(list(self.listed()), ["A.b_c-9"])

    def test_many_at_once(self):
        runs = [self.start([WARDER, "run", "--session", "n", "--", "sh", "-c", "echo $TMPDIR"],
                           stdout=subprocess.PIPE) for _ in range(8)]
        places = {run.communicate(timeout=TIMEOUT)[0] for run in runs}
        self.assertEqual(len(places), 1)
        self.assertStatus(self.session("end", "n"))

    def test_words(self):
        for args, status in ((["--help"], 0), ([], 2), (["lst"], 2), (["end"], 2), (["list", "x"], 2)):
            done = self.session(*args)
            self.assertStatus(done, status)
            if status:
                self.assertRegex(done.err, r"^warder: .*warder session --help\n$")
        self.hold("--session", "n", "--", "cat", self.secret, answer=allow("session"))
        self.assertRegex(self.session("list").out, r"^n +since \d{4}-.*  1 answer  /")


if __name__ == "__main__":
    main()
