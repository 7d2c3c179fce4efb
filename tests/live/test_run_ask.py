#!/usr/bin/env python3
"""Questions in hold mode, and the protocol that answers them."""

import json
import os
import re
import socket
import threading
import time

from run_help import (SLOW, TIMEOUT, RunCase, Talk, allow, both_users, by_chance, counts_by_chance, deny, fixture, main,
                      scope_of, wait_until)


@both_users
class Ask(RunCase):
    def setUp(self):
        super().setUp()
        self.secret = self.write("outside/secret", "the secret\n")
        self.other = self.write("outside/other", "the other\n")

    def saved(self):
        """The one policy file that there is for a project."""
        names = os.listdir(os.path.join(self.dir, "config/warder/projects"))
        name, = [n for n in names if n.endswith(".policy")]
        return name

    # ---- the question ----

    def test_once_leaves_two_lines_and_one_run(self):
        done = self.hold("--", "bash", "-c", f"echo x >> log; cat {self.secret}; echo y >> log")
        self.assertStatus(done)
        self.assertEqual("x\ny\n", self.read("project/log"))
        self.assertEqual("the secret\n", done.out)
        self.assertEqual(1, done.report["runs"])
        self.assertEqual(1, len(done.asked))

    def test_what_a_question_holds(self):
        done = self.hold("--label", "my label", "--", "cat", "../outside/secret")
        self.assertStatus(done)
        q, = done.asked
        self.assertEqual(
            dict(event="ask", id=1, group=1, exe=os.path.realpath("/usr/bin/cat"),
                 argv=["cat", "../outside/secret"], cwd=self.project, call="openat", path=self.secret,
                 given="../outside/secret", access=["read"], exists=True, sensitive=False),
            {k: v for k, v in q.items() if k not in ("time", "pid", "scopes", "lifetimes")})
        self.assertRegex(q["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$")
        self.assertEqual(["once", "session", "always"], q["lifetimes"])
        first = q["scopes"][0]
        self.assertEqual(dict(path=self.secret, kind="exact", access=["read"], surplus=0, sensitive=False,
                              rule=f"allow read {self.secret} exact"), first)
        tree = q["scopes"][scope_of(q, self.outside, "tree")]
        self.assertEqual(1, tree["surplus"])  # the other file
        for s in q["scopes"]:
            self.assertNotIn(s["path"], ("/", "/tmp", self.home, os.path.dirname(self.home)))

    def test_the_events(self):
        done = self.hold("--label", "my label", "--", "cat", self.secret)
        start, asked, granted, end = done.events
        self.assertEqual(("start", 1, "my label", ["cat", self.secret]),
                         (start["event"], start["protocol"], start["label"], start["command"]))
        self.assertEqual(start["run"], done.report["run"])
        self.assertEqual("ask", asked["event"])
        self.assertEqual(("granted", self.secret, "once", "user"),
                         (granted["event"], granted["path"], granted["lifetime"], granted["by"]))
        self.assertEqual(("exit", 0), (end["event"], end["exit"]))

    def test_deny_stands_and_is_remembered(self):
        done = self.hold("--", "bash", "-c", f"cat {self.secret}; cat {self.secret}; echo end",
                         answer=deny)
        self.assertStatus(done)
        self.assertEqual("end\n", done.out)
        self.assertEqual(2, done.err.count("Permission denied"))
        self.assertEqual(1, len(done.asked))
        denial, = done.denials(self.secret)
        self.assertEqual(("deny", "user", 2), (denial["answer"], denial["by"], denial["count"]))

    def test_once_is_this_process_until_it_execs(self):
        inner = f"read a < {self.secret}; read b < {self.secret}; exec cat {self.secret}"
        done = self.hold("--", "bash", "-c", inner)
        self.assertStatus(done)
        self.assertEqual(2, len(done.asked), done)  # bash, and then cat
        done = self.hold("--", "bash", "-c", f"/bin/cat {self.secret}; /bin/cat {self.secret}; true")
        self.assertEqual(2, len(done.asked), done)

    def test_session_is_for_all_until_the_end(self):
        command = ("--", "bash", "-c", f"cat {self.secret}; cat {self.secret}; exec cat {self.secret}")
        for _ in range(2):
            done = self.hold(*command, answer=allow("session"))
            self.assertStatus(done)
            self.assertEqual(3, done.out.count("the secret"))
            self.assertEqual(1, len(done.asked))

    def test_always_is_saved_and_holds_in_the_next_run(self):
        self.assertStatus(self.hold("--", "cat", self.secret, answer=allow("always")))
        projects = os.path.join(self.dir, "config/warder/projects")
        file = os.path.join(projects, self.saved())
        self.assertEqual(0o600, os.stat(file).st_mode & 0o777)
        self.assertEqual(0o700, os.stat(projects).st_mode & 0o777)
        text = self.read(file)
        self.assertRegex(text, rf"(?m)^allow +read +{re.escape(self.secret)} +exact\b")
        self.assertRegex(text, r"#.*\d{4}-\d\d-\d\d.*cat.*openat")
        done = self.hold("--", "cat", self.secret, self.other, answer=deny)
        self.assertEqual("the secret\n", done.out)
        self.assertEqual([self.other], [q["path"] for q in done.asked])

    def test_never_is_saved_too(self):
        never = lambda q: {"answer": "deny", "lifetime": "always"}
        self.hold("--", "cat", self.secret, answer=never)
        done = self.hold("--", "cat", self.secret)
        self.assertStatus(done, 1)
        self.assertNothingAsked(done)
        denial, = done.denials(self.secret)
        self.assertEqual(("deny", "policy"), (denial["answer"], denial["by"]))
        self.assertIn("/config/warder/projects/", denial["rule"])

    def test_another_project_does_not_inherit(self):
        self.assertStatus(self.hold("--", "cat", self.secret, answer=allow("always")))
        elsewhere = os.path.join(self.dir, "elsewhere")
        os.mkdir(elsewhere)
        self.own(elsewhere)
        done = self.hold("--", "cat", self.secret, cwd=elsewhere, answer=deny)
        self.assertEqual(1, len(done.asked))

    def test_saving_is_not_offered_with_policy_files(self):
        policy = self.write("policy", "allow r ./nothing\n")
        answers = iter([allow("always"), allow("session")])
        talk = Talk(self, ["--policy", policy, "--", "cat", self.secret])
        q = talk.ask()
        self.assertEqual(["once", "session"], q["lifetimes"])
        talk.answer(q, **next(answers)(q))
        self.assertIn("not offered", talk.next("error")["message"])
        talk.answer(q, **next(answers)(q))
        self.assertStatus(talk.finish())

    def test_a_wider_scope(self):
        def below(q):
            return {"answer": "allow", "scope": scope_of(q, self.outside, "tree"), "lifetime": "session"}
        done = self.hold("--", "cat", self.secret, self.other, answer=below)
        self.assertStatus(done)
        self.assertEqual(1, len(done.asked))
        grant, = done.report["grants"]
        self.assertEqual((self.outside, "tree", "session", "user"),
                         (grant["path"], grant["kind"], grant["lifetime"], grant["by"]))

    def test_a_preset_is_offered(self):
        self.write("home/.npm/x", "cached\n")
        def preset(q):
            return {"answer": "allow", "scope": scope_of(q, "node", "preset"), "lifetime": "session"}
        done = self.hold("--", "bash", "-c", "cat ~/.npm/x; echo y > ~/.npm/y", answer=preset)
        self.assertStatus(done)
        self.assertEqual(1, len(done.asked), done)
        self.assertEqual("y\n", self.read("home/.npm/y"))

    def test_sensitive_is_said(self):
        key = self.write("home/.ssh/id_rsa", "key\n", 0o600)
        done = self.hold("--", "cat", key, answer=deny)
        q, = done.asked
        self.assertTrue(q["sensitive"])
        self.assertEqual(key, q["path"])

    def test_forbid_is_never_asked(self):
        done = self.hold("--deny", self.secret, "-r", self.outside, "--", "cat", self.secret, self.other)
        self.assertStatus(done, 1)
        self.assertEqual("the other\n", done.out)
        self.assertNothingAsked(done)
        self.assertIn("forbidden", done.err)
        self.assertEqual("policy", done.denials(self.secret)[0]["by"])

    def test_a_grant_below_a_forbidden_place_helps_nothing(self):
        done = self.run_report("--deny", self.outside, "-r", self.secret, "--", "cat", self.secret)
        self.assertStatus(done, 1)

    # ---- nobody, and not in time ----

    def test_a_closed_pipe_is_no(self):
        talk = Talk(self, ["--", "bash", "-c", f"cat {self.secret}; cat {self.other}; echo end"])
        talk.ask()
        talk.hang_up()
        done = talk.finish()
        self.assertStatus(done)
        self.assertEqual("end\n", done.out)
        self.assertEqual({"none"}, {d["by"] for d in done.report["denials"]})

    def test_a_pipe_that_is_closed_from_the_start_is_no(self):
        talk = Talk(self, ["--", "bash", "-c", f"sleep 0.3; cat {self.secret}; echo end"])
        talk.hang_up()
        done = talk.finish()
        self.assertStatus(done)
        self.assertEqual("end\n", done.out)

    def test_the_reader_of_events_goes_away(self):
        talk = Talk(self, ["--", "bash", "-c", f"cat {self.secret}; echo end"])
        talk.ask()
        os.close(talk.events_fd)
        talk.events_fd = -1
        self.assertEqual(0, talk.process.wait(timeout=TIMEOUT))
        self.assertEqual("end\n", self.read("stdout"))

    def test_answer_timeout(self):
        talk = Talk(self, ["--answer-timeout", "0.4", "--", "bash", "-c", f"cat {self.secret}; s=$?; sleep 1; exit $s"])
        q = talk.ask()
        begin = time.monotonic()
        cancel = talk.next("cancel")
        self.assertGreater(time.monotonic() - begin, 0.3)
        self.assertEqual((q["id"], "timeout"), (cancel["id"], cancel["reason"]))
        talk.answer(q, **allow()(q))  # too late
        self.assertIn("no such question", talk.next("error")["message"])
        done = talk.finish()
        self.assertStatus(done, 1)
        self.assertEqual("timeout", done.denials(self.secret)[0]["by"])

    def test_time_for_answers_does_not_count(self):
        talk = Talk(self, ["--timeout", str(SLOW), "--", "bash", "-c", f"cat {self.secret}; echo end"])
        q = talk.ask()
        time.sleep(1.5 * SLOW)
        talk.answer(q, **allow()(q))
        done = talk.finish()
        self.assertStatus(done)
        self.assertEqual("the secret\nend\n", done.out)
        self.assertGreaterEqual(done.report["held_ms"], 1400 * SLOW)

    def test_and_then_time_goes_on(self):
        talk = Talk(self, ["--timeout", str(0.7 * SLOW), "--", "bash", "-c", f"cat {self.secret}; sleep {20 * SLOW}"])
        q = talk.ask()
        time.sleep(0.5 * SLOW)
        talk.answer(q, **allow()(q))
        begin = time.monotonic()
        done = talk.finish()
        self.assertStatus(done, 124)
        self.assertGreater(time.monotonic() - begin, 0.4)

    def test_yes(self):
        key = self.write("home/.ssh/id_rsa", "key\n", 0o600)
        done = self.run_report("--yes", "--", "bash", "-c", f"cat {self.secret} {key}; echo x > {self.outside}/n")
        self.assertStatus(done)
        self.assertEqual("the secret\n", done.out)
        self.assertEqual("x\n", self.read("outside/n"))
        self.assertIn("--yes", done.err)
        self.assertEqual("hold", done.report["engine"]["mode"])
        self.assertEqual([("deny", [key])], [(d["answer"], [d["path"]]) for d in done.denials(key)])
        self.assertEqual("allow", done.denials(self.secret)[0]["answer"])

    def test_yes_leaves_the_sensitive_to_whoever_answers(self):
        key = self.write("home/.ssh/id_rsa", "key\n", 0o600)
        done = self.hold("--yes", "--", "cat", self.secret, key, answer=deny)
        self.assertEqual([key], [q["path"] for q in done.asked])
        self.assertEqual("the secret\n", done.out)

    def test_nobody_to_ask_is_report(self):
        done = self.run_report("--", "cat", self.secret)
        self.assertStatus(done, 1)
        self.assertEqual("report", done.report["engine"]["mode"])
        self.assertEqual("none", done.denials(self.secret)[0]["by"])
        self.assertIn(f"warder: refused read {self.secret} (cat, 1×, then exited 1); to allow: warder policy allow r {self.secret}",
                      done.err)

    # ---- the wire ----

    def test_bad_lines_leave_the_question_open(self):
        talk = Talk(self, ["--", "cat", self.secret])
        q = talk.ask()
        for line in ("nonsense", "[]", "{}", '{"id":1}', '{"id":1,"answer":"maybe"}', '{"id":"1","answer":"allow"}',
                     '{"id":99,"answer":"allow"}', '{"id":1,"answer":"allow","scope":5}',
                     '{"id":1,"answer":"allow","scope":-1}', '{"id":1,"answer":"allow","lifetime":"long"}',
                     '{"ids":[],"answer":"allow"}', '{"id":1,"ids":[1],"answer":"allow"}',
                     "{" + "x" * 70000 + "}", '{"id":1,"answer":"allow"'):
            with self.subTest(line[:60]):
                talk.send(line + "\n")
                self.assertTrue(talk.next("error")["message"])
        self.assertTrue(talk.is_quiet(0.2))
        talk.send("\n  \n")
        talk.answer(q, **allow()(q))
        done = talk.finish()
        self.assertStatus(done)
        self.assertEqual(0, done.denials(self.secret, answer="deny").__len__())

    def test_an_answer_in_pieces(self):
        talk = Talk(self, ["--", "cat", self.secret])
        q = talk.ask()
        for byte in json.dumps({"id": q["id"], "answer": "allow"}) + "\n":
            talk.send(byte)
            time.sleep(0.002)
        self.assertStatus(talk.finish())

    def two_at_once(self):
        talk = Talk(self, ["--", "bash", "-c", f"head -n 9 {self.secret} & a=$!; head -n 9 {self.other} & wait $! && wait $a"])
        return talk, [talk.ask(), talk.ask()]

    def test_many_by_one_answer(self):
        talk, asked = self.two_at_once()
        talk.send(json.dumps({"ids": [q["id"] for q in asked], "answer": "allow"}) + "\n")
        done = talk.finish()
        self.assertStatus(done)
        self.assertEqual(["the other", "the secret"], sorted(done.out.splitlines()))

    def test_answers_in_any_order(self):
        talk, asked = self.two_at_once()
        for q in reversed(asked):
            talk.answer(q, answer="allow")
        self.assertStatus(talk.finish())

    @by_chance
    def test_an_answer_that_covers_another_question(self):
        talk, asked = self.two_at_once()
        talk.answer(asked[0], answer="allow", lifetime="session",
                    scope=scope_of(asked[0], self.outside, "tree"))
        cancel = talk.next("cancel")
        self.assertEqual((asked[1]["id"], "covered"), (cancel["id"], cancel["reason"]))
        self.assertStatus(talk.finish())

    def test_one_question_where_many_wait_for_the_same(self):
        talk = Talk(self, ["--", "bash", "-c", f"for i in 1 2 3 4; do cat {self.secret} > got$i & done; wait; cat got?"])
        q = talk.ask()
        self.assertTrue(talk.is_quiet(0.5))
        talk.answer(q, answer="allow", lifetime="always")
        done = talk.finish()
        self.assertEqual(4, done.out.count("the secret"))
        self.assertEqual(1, len(done.asked))
        saved = self.read(os.path.join(self.dir, "config/warder/projects", self.saved()))
        self.assertEqual(1, saved.count("allow"), saved)

    def test_the_asker_ends_and_the_question_goes(self):
        talk = Talk(self, ["--", "bash", "-c", f"cat {self.secret} & sleep 0.7; kill %1; wait; echo end"])
        q = talk.ask()
        cancel = talk.next("cancel")
        self.assertEqual((q["id"], "exited"), (cancel["id"], cancel["reason"]))
        done = talk.finish()
        self.assertStatus(done)
        self.assertEqual("end\n", done.out)

    def test_a_held_thread_is_killed(self):
        talk = Talk(self, ["--", "bash", "-c", f"cat {self.secret} & sleep 0.5; kill -9 %1; wait %1; echo $?"])
        talk.ask()
        self.assertEqual("exited", talk.next("cancel")["reason"])
        self.assertEqual("137\n", talk.finish().out)

    def test_a_held_thread_gets_its_signals_afterwards(self):
        talk = Talk(self, ["--", "bash", "-c",
                           f"trap 'echo caught' USR1; (sleep 0.5; kill -USR1 $$) & read a < {self.secret}; echo \"$a\"; wait"])
        q = talk.ask()
        time.sleep(SLOW)
        talk.answer(q, answer="allow")
        self.assertEqual("caught\nthe secret\n", talk.finish().out)

    def test_the_rest_of_the_tree_goes_on_meanwhile(self):
        talk = Talk(self, ["--", "bash", "-c", f"cat {self.secret} & echo here > mark; wait"])
        q = talk.ask()
        self.assertTrue(wait_until(lambda: os.path.exists(os.path.join(self.project, "mark"))))
        talk.answer(q, answer="allow")
        self.assertStatus(talk.finish())

    def test_a_full_events_pipe_blocks_nothing(self):
        talk = Talk(self, ["--answer-timeout", "0.03", "--", "bash", "-c",
                           f"for i in {{1..120}}; do : < {self.outside}/{'n' * 200}$i; done 2>/dev/null; echo end > mark"])
        for i in range(1, 121):
            self.write(f"outside/{'n' * 200}{i}")
        self.assertTrue(wait_until(lambda: os.path.exists(os.path.join(self.project, "mark")), 40))
        self.assertStatus(talk.finish())

    def test_events_alone_ask_nobody(self):
        r, w = os.pipe()
        done = self.run_report("--events", str(w), "--", "cat", self.secret, pass_fds=(w,))
        os.close(w)
        with os.fdopen(r) as f:
            events = [json.loads(line) for line in f]
        self.assertStatus(done, 1)
        self.assertEqual(["start", "denied", "exit"], [e["event"] for e in events])

    def test_events_to_a_socket(self):
        path = os.path.join(self.dir, "sock")
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(path)
            os.chmod(path, 0o777)
            s.listen()
            s.settimeout(TIMEOUT)
            lines = []
            def listen():
                peer, _ = s.accept()
                with peer.makefile() as f:
                    lines.extend(f)
                peer.close()
            t = threading.Thread(target=listen)
            t.start()
            done = self.run_report("--events", path, "--", "true")
            t.join(TIMEOUT)
        self.assertStatus(done)
        self.assertEqual(["start", "exit"], [json.loads(line)["event"] for line in lines])

    def test_the_protocols_pipes_are_not_the_commands(self):
        talk = Talk(self, ["--", "ls", "/proc/self/fd"])
        done = talk.finish()
        self.assertEqual(["0", "1", "2", "3"], done.out.split())


@both_users
class Held(RunCase):
    """What a program can notice of having been held."""

    @counts_by_chance
    def test_threads_that_are_all_refused(self):
        files = [self.write(f"outside/f{i}", f"{i}\n") for i in range(4)]
        for answer, errors in ((allow("session"), 0), (deny, 8 * 25 * len(files))):
            with self.subTest(errors=errors):
                done = self.hold("--", fixture("run_threads"), "25", *files, answer=answer)
                self.assertStatus(done)
                self.assertEqual(f"threads 8 opened {8 * 25 * len(files) - errors} refused {errors} other 0\n",
                                 done.out)
                self.assertEqual(sorted(files), sorted(q["path"] for q in done.asked), done)

    @counts_by_chance
    def test_threads_once_each_path(self):
        files = [self.write(f"outside/f{i}", f"{i}\n") for i in range(4)]
        done = self.hold("--", fixture("run_threads"), "1", *files)
        self.assertStatus(done)
        self.assertEqual(sorted(files), sorted(q["path"] for q in done.asked), done)


if __name__ == "__main__":
    main()
