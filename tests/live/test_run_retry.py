#!/usr/bin/env python3
"""Retry mode: refused first, asked at the end, shown what changed, run again."""

import os
import shutil
import signal
import subprocess

from run_help import RunCase, Talk, allow, both_users, deny, main


@both_users
class Retry(RunCase):
    def setUp(self):
        super().setUp()
        self.secret = self.write("outside/secret", "the secret\n")
        self.other = self.write("outside/other", "the other\n")

    def retry(self, *args, answer=None, rerun="allow", **more):
        """Paths are answered by answer; the question whether to run again by rerun."""
        answer = answer or allow("session")
        def by_kind(q):
            if not q.get("rerun"):
                return answer(q)
            return {"answer": rerun, "lifetime": "once"}
        done = self.hold("--on-denial", "retry", *args, answer=by_kind, **more)
        done.reruns = [q for q in done.asked if q.get("rerun")]
        done.paths = [q["path"] for q in done.asked if not q.get("rerun")]
        return done

    def test_asked_at_the_end_and_run_again(self):
        done = self.retry("--", "bash", "-c", f"echo x >> log; cat {self.secret} {self.other}; echo y >> log")
        self.assertStatus(done)
        self.assertEqual("retry", done.report["engine"]["mode"])
        self.assertEqual([self.secret, self.other], done.paths)
        self.assertEqual(2, done.report["runs"])
        self.assertEqual("the secret\nthe other\n", done.out)
        self.assertEqual("x\ny\nx\ny\n", self.read("project/log"))
        self.assertEqual(0, done.report["engine"]["brokered"])
        self.assertIn("rerun", [e["event"] for e in done.events])

    def test_what_changed_is_shown_first(self):
        self.write("project/gone", "x")
        self.write("project/from", "x")
        done = self.retry("--", "bash", "-c",
                          f"echo x >> log; mkdir made; rm gone; mv from to; echo z > $TMPDIR/z; cat {self.secret}; true",
                          rerun="deny")
        q, = done.reruns
        for line in (f"wrote {self.project}/log", f"made {self.project}/made",
                     f"removed {self.project}/gone", f"moved {self.project}/from"):
            self.assertIn(line, q["text"])
        self.assertNotIn(self.tmp, q["text"])
        self.assertEqual(["bash", "-c"], q["argv"][:2])
        self.assertEqual(1, done.report["runs"])

    def test_one_line_tells_what_became_of_a_path(self):
        for name in ("removed", "replaced", "kept", "there"):
            self.write(f"project/{name}", "x")
        done = self.retry("--", "bash", "-c", "rm removed replaced; echo new >replaced; echo new >replaced; "
                          "mv kept kept~; echo new >kept; "  # as an editor saves
                          "mkdir temporary; rmdir temporary; "
                          "mkdir made; mkdir made/x; mv made named; "
                          "echo x >>there; rm there; mkdir -p named/y; rmdir named/y; "
                          f"cat {self.secret}; true", rerun="deny")
        q, = done.reruns
        expected = {"removed": "removed", "replaced": "replaced", "kept": "replaced", "kept~": "moved to",
                    "named": "made", "named/x": "made", "there": "removed"}
        self.assertEqual(sorted(f"{verb} {self.project}/{name}" for name, verb in expected.items()),
                         sorted(q["text"].splitlines()))

    def test_a_move_over_something_replaced_it(self):
        for name in ("new", "old", "swapped", "other", "fresh", "dir/x", "linked"):
            self.write(f"project/{name}", name)
        os.mkdir(self.own(os.path.join(self.project, "dir")) + "/../empty")
        self.own(os.path.join(self.project, "empty"))
        done = self.retry("--", "bash", "-c", "mv new old; mv fresh nowhere; mv -n other old; mv -T dir empty; "
                          "cp swapped made; cp swapped made2; mv made made2; ln linked same; mv same other; "
                          f"cat {self.secret}; true", rerun="deny")
        q, = done.reruns
        expected = {"old": "replaced", "new": "moved", "fresh": "moved", "nowhere": "moved to", "dir": "moved",
                    "empty": "replaced", "made2": "made", "other": "replaced"}
        self.assertEqual(sorted(f"{verb} {self.project}/{name}" for name, verb in expected.items()),
                         sorted(q["text"].splitlines()))

    def test_a_move_in_place_over_something(self):
        """By the broker, where the policy varies within the directory."""
        for name in ("new", "old"):
            self.write(f"project/{name}", name)
        self.write("project/kept/secret", "x")
        done = self.retry("--deny", os.path.join(self.project, "kept/secret"), "--", "bash", "-c",
                          f"mv new kept/new; cp old kept/old; mv kept/new kept/old; cat {self.secret}; true", rerun="deny")
        q, = done.reruns
        self.assertIn(f"made {self.project}/kept/old", q["text"])
        self.write("project/kept/there", "x")
        self.write("project/more", "x")
        done = self.retry("--deny", os.path.join(self.project, "kept/secret"), "--", "bash", "-c",
                          f"mv more kept/there; cat {self.secret}; true", rerun="deny")
        q, = done.reruns
        self.assertEqual(sorted(q["text"].splitlines()), [f"moved {self.project}/more", f"replaced {self.project}/kept/there"])

    def test_of_many_changes_the_first_are_shown(self):
        """And what is beyond passes without a stop, in old processes, in new ones, and beside threads."""
        script = ("import os, sys, threading\n"
                  "stop = threading.Event()\n"
                  "if sys.argv[1] == 'threads': threading.Thread(target=stop.wait).start()\n"
                  "for i in range(1500):\n"
                  "    os.close(os.open(f'made/{i:04}', os.O_CREAT | os.O_EXCL | os.O_WRONLY))\n"
                  "for i in range(1500): os.close(os.open(f'made/{i:04}', os.O_WRONLY))\n"
                  "if not os.fork():\n"
                  "    for i in range(1500): os.mkdir(f'made/{i:04}d')\n"
                  "    os._exit(0)\n"
                  "print(os.wait()[1])\n"
                  "try: open(sys.argv[2])\n"
                  "except PermissionError: print('refused')\n"
                  "stop.set()\n")
        self.env["PATH"] = "/usr/bin:/bin"  # an interpreter that the default policy opens
        for how in ("one", "threads"):
            made = os.path.join(self.project, "made")
            os.mkdir(made)
            self.own(made)
            done = self.retry("--", "python3", "-c", script, how, self.secret, rerun="deny")
            self.assertStatus(done)
            self.assertEqual("0\nrefused\n", done.out)
            q, = done.reruns
            self.assertEqual([f"made {made}/{i:04}" for i in range(12)] + ["and at least 188 more changes", ""],
                             q["text"].split("\n"))
            self.assertEqual(3000, len(os.listdir(made)))
            if done.report["engine"]["fast"]:
                self.assertLess(done.report["engine"]["stops"], 2 * 200 + 300, how)
            shutil.rmtree(made)

    def test_nothing_changed_is_said_too(self):
        done = self.retry("--", "cat", self.secret)
        self.assertEqual(1, len(done.reruns))
        self.assertIn("nothing", done.reruns[0]["text"])

    def test_a_child_signal_between_the_runs(self):
        # It may come late, when the tree it was about is gone and the question stands.
        talk = Talk(self, ["--on-denial", "retry", "--", "cat", self.secret])
        q = talk.ask()
        for _ in range(3):
            os.kill(talk.process.pid, signal.SIGCHLD)
            self.assertTrue(talk.is_quiet(0.05))
        talk.answer(q, answer="deny")
        self.assertStatus(talk.finish(), 1)

    def test_nothing_granted_is_no_rerun(self):
        done = self.retry("--", "cat", self.secret, answer=deny)
        self.assertStatus(done, 1)
        self.assertEqual([self.secret], done.paths)
        self.assertEqual([], done.reruns)
        self.assertEqual(1, done.report["runs"])
        self.assertEqual(("deny", "user"), tuple(done.denials(self.secret)[0][k] for k in ("answer", "by")))

    def test_no_to_the_rerun_keeps_the_first_status(self):
        done = self.retry("--", "bash", "-c", f"cat {self.secret} || exit 9", rerun="deny")
        self.assertStatus(done, 9)
        self.assertEqual(1, done.report["runs"])

    def test_until_nothing_new_is_refused(self):
        done = self.retry("--", "bash", "-c", f"cat {self.secret} && cat {self.other} && echo end")
        self.assertStatus(done)
        self.assertEqual(3, done.report["runs"])
        self.assertTrue(done.out.endswith("the other\nend\n"), done)
        self.assertEqual([1, 2], [d["run"] for d in done.report["denials"]])

    def test_nothing_refused_asks_nothing(self):
        done = self.retry("--", "true")
        self.assertStatus(done)
        self.assertNothingAsked(done)
        self.assertEqual(1, done.report["runs"])

    def test_writes_are_done_the_second_time(self):
        below = self.outside
        def tree(q):
            trees = [(len(s["access"]), i) for i, s in enumerate(q["scopes"])
                     if (s["path"], s["kind"]) == (below, "tree")]
            return {"answer": "allow", "scope": max(trees)[1], "lifetime": "session"}
        done = self.retry("--", "bash", "-c", f"mkdir -p {below}/new && echo x > {below}/new/file", answer=tree)
        self.assertStatus(done)
        self.assertEqual("x\n", self.read("outside/new/file"))

    def test_a_pipe_on_stdin_was_read(self):
        done = self.retry("--", "bash", "-c", f"cat > copy; cat {self.secret}", stdin=self.pipe("once only\n"))
        self.assertStatus(done, 1)
        self.assertEqual([self.secret], done.paths)
        self.assertEqual([], done.reruns)
        self.assertEqual(1, done.report["runs"])
        self.assertIn("pipe", done.err)

    def pipe(self, text):
        r, w = os.pipe()
        os.write(w, text.encode())
        os.close(w)
        self.addCleanup(os.close, r)
        return r

    def test_a_file_on_stdin_is_read_again_from_where_it_stood(self):
        file = self.write("project/input", "skipped\nline\n")
        with open(file, "rb", buffering=0) as f:
            f.seek(len("skipped\n"))
            done = self.retry("--", "bash", "-c", f"cat; cat {self.secret}", stdin=f)
        self.assertStatus(done)
        self.assertEqual(2, done.report["runs"])
        self.assertEqual("line\nline\nthe secret\n", done.out)

    def test_a_closed_stdin(self):
        done = self.retry("--", "cat", self.secret, stdin=subprocess.DEVNULL)
        self.assertStatus(done)
        self.assertEqual(2, done.report["runs"])

    def test_tmpdir_stays_across_runs(self):
        done = self.retry("--", "bash", "-c", f"cat $TMPDIR/kept; echo run >> $TMPDIR/kept; cat {self.secret}")
        self.assertStatus(done)
        self.assertEqual("run\nthe secret\n", done.out)
        self.assertEqual([], os.listdir(self.tmp))

    def test_always_is_saved(self):
        done = self.retry("--", "cat", self.secret, answer=allow("always"))
        self.assertStatus(done)
        done = self.run_report("--", "cat", self.secret)
        self.assertStatus(done)

    def test_yes_is_hold(self):
        done = self.run_report("--on-denial", "retry", "--yes", "--", "bash", "-c",
                               f"echo x >> log; cat {self.secret}")
        self.assertStatus(done)
        self.assertEqual("x\n", self.read("project/log"))
        self.assertEqual(("hold", 1), (done.report["engine"]["mode"], done.report["runs"]))

    def test_nobody_to_ask(self):
        done = self.run_report("--on-denial", "retry", "--", "cat", self.secret)
        self.assertStatus(done, 1)
        self.assertEqual(1, done.report["runs"])
        self.assertEqual("deny", done.denials(self.secret)[0]["answer"])


if __name__ == "__main__":
    main()
