"""warder run --ask socket: questions wait in the state directory for whoever comes by."""

import json
import os
import select
import signal
import socket
import subprocess
import time

from run_help import TIMEOUT, WARDER, RunCase, both_users, main, wait_until


class Visitor:
    """`warder ask --json`: events come, answers go."""

    def __init__(self, case, *args):
        self.process = case.start([WARDER, "ask", "--json", *args], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.text = b""

    def next(self, kind, seconds=TIMEOUT):
        end = time.monotonic() + seconds
        while True:
            while b"\n" in self.text:
                line, self.text = self.text.split(b"\n", 1)
                event = json.loads(line)
                if event["event"] == kind:
                    return event
            ready, _, _ = select.select([self.process.stdout], [], [], end - time.monotonic())
            data = os.read(self.process.stdout.fileno(), 65536) if ready else b""
            if not data:
                raise AssertionError(f"no {kind} event came; {self.text!r}")
            self.text += data

    def say(self, **words):
        self.process.stdin.write((json.dumps(words) + "\n").encode())
        self.process.stdin.flush()

    def leave(self):
        self.process.kill()
        self.process.wait()


@both_users
class Ask(RunCase):
    def begin(self, *args, script="cat \"$1\"", wait=True):
        """A run that will ask for a file outside; its standard error goes to a file."""
        self.secret = self.write("outside/secret", "found\n")
        self.err = open(os.path.join(self.dir, "err"), "w+", encoding="utf-8")
        self.addCleanup(self.err.close)
        run = self.start([WARDER, "run", "--ask", "socket", "--report", self.report_file, *args,
                          "--", "sh", "-c", script, "sh", self.secret],
                         stdout=subprocess.PIPE, stderr=self.err)
        if wait:
            self.assertTrue(wait_until(lambda: "warder ask" in self.said()), self.said())
        return run

    def said(self):
        with open(self.err.name, encoding="utf-8") as f:
            return f.read()

    def desk(self):
        return os.path.join(self.dir, "state", "warder", "ask")

    def finish(self, run):
        out, _ = run.communicate(timeout=TIMEOUT)
        return out.decode(), run.returncode

    def test_a_yes_from_elsewhere(self):
        run = self.begin()
        visitor = Visitor(self)
        self.assertEqual(visitor.next("start")["command"][0], "sh")
        q = visitor.next("ask")
        self.assertEqual((q["path"], q["access"]), (self.secret, ["read"]))
        visitor.say(id=q["id"], answer="allow", lifetime="once")
        self.assertEqual(visitor.next("granted")["path"], self.secret)
        self.assertEqual(visitor.next("exit")["exit"], 0)
        self.assertEqual(self.finish(run), ("found\n", 0))
        self.assertEqual(visitor.process.wait(TIMEOUT), 0)
        self.assertEqual(os.listdir(self.desk()), [])
        self.assertEqual(self.read_report()["denials"][0]["by"], "user")

    def test_a_no_from_elsewhere(self):
        run = self.begin()
        visitor = Visitor(self)
        visitor.say(id=visitor.next("ask")["id"], answer="deny")
        self.assertEqual(self.finish(run), ("", 1))

    def test_who_leaves_leaves_the_question(self):
        run = self.begin()
        first = Visitor(self)
        first.next("ask")
        first.leave()
        self.assertTrue(wait_until(lambda: self.said().count("warder ask") == 2), self.said())
        second = Visitor(self)
        second.say(id=second.next("ask")["id"], answer="allow")
        self.assertEqual(self.finish(run), ("found\n", 0))

    def test_the_others_hear_of_an_answer(self):
        run = self.begin()
        first, second = Visitor(self), Visitor(self)
        q = first.next("ask")
        self.assertEqual(second.next("ask")["id"], q["id"])
        first.say(id=q["id"], answer="allow")
        cancel = second.next("cancel")
        self.assertEqual((cancel["id"], cancel["reason"]), (q["id"], "covered"))
        self.assertEqual(self.finish(run), ("found\n", 0))

    def test_details_from_elsewhere(self):
        run = self.begin()
        visitor = Visitor(self)
        q = visitor.next("ask")
        visitor.say(details=q["id"])
        self.assertGreater(len(visitor.next("details")["stack"]), 2)
        visitor.say(id=q["id"], answer="deny")
        self.finish(run)

    def test_time_is_over(self):
        run = self.begin("--answer-timeout", "0.3")
        visitor = Visitor(self)
        self.assertEqual(self.finish(run), ("", 1))
        self.assertEqual(self.read_report()["denials"][0]["by"], "timeout")
        visitor.leave()

    def test_ci_does_not_close_the_desk(self):
        self.env["CI"] = "true"
        run = self.begin()
        visitor = Visitor(self)
        visitor.say(id=visitor.next("ask")["id"], answer="allow")
        self.assertEqual(self.finish(run), ("found\n", 0))

    def test_a_bad_line_is_told_and_the_question_stays(self):
        run = self.begin()
        visitor = Visitor(self)
        q = visitor.next("ask")
        visitor.process.stdin.write(b"nonsense\n")
        visitor.say(id=99, answer="allow")
        self.assertIn("not JSON", visitor.next("error")["message"])
        self.assertIn("no such question", visitor.next("error")["message"])
        visitor.say(id=q["id"], answer="allow")
        self.assertEqual(self.finish(run), ("found\n", 0))

    def test_which_run_is_meant(self):
        runs = [self.begin(), None]
        first = os.listdir(self.desk())[0]
        runs[1] = self.begin(wait=False)
        self.assertTrue(wait_until(lambda: len(os.listdir(self.desk())) == 2))
        done = self.native(WARDER, "ask", "--json")
        self.assertEqual(done.status, 1)
        self.assertIn("2 runs wait", done.err)
        for name in sorted(os.listdir(self.desk()), key=lambda n: n != first):
            visitor = Visitor(self, name[:12])
            self.assertEqual(visitor.next("start")["run"], name)
            visitor.say(id=visitor.next("ask")["id"], answer="allow")
            self.assertEqual(visitor.next("exit")["exit"], 0)
        for run in runs:
            self.assertEqual(self.finish(run), ("found\n", 0))

    def test_nobody_waits(self):
        for args in ((), ("abc",)):
            done = self.native(WARDER, "ask", "--json", *args)
            self.assertEqual(done.status, 1, str(done))
            self.assertIn("no such run waits", done.err)

    def test_what_a_killed_run_leaves_is_cleared(self):
        run = self.begin()
        run.send_signal(signal.SIGKILL)
        run.wait()
        self.assertEqual(len(os.listdir(self.desk())), 1)
        self.assertEqual(self.native(WARDER, "ask", "--json").status, 1)
        self.assertEqual(os.listdir(self.desk()), [])

    def test_without_a_terminal(self):
        done = self.native(WARDER, "ask")
        self.assertEqual(done.status, 125)
        self.assertIn("warder ask --json", done.err)

    def test_words(self):
        for args, status in ((["--help"], 0), (["--nce"], 2), (["a", "b"], 2), (["--once", "--json"], 2)):
            done = self.native(WARDER, "ask", *args)
            self.assertEqual(done.status, status, str(done))
            if status:
                self.assertRegex(done.err, r"^warder: .*warder ask --help\n$")
            else:
                self.assertLessEqual(done.out.count("\n"), 24)

    def test_the_tree_can_not_answer_for_itself(self):
        """Neither by the socket's path nor by any other program of its own."""
        script = (f'/usr/bin/python3 - <<END\n'
                  'import os, socket\n'
                  f'd = {self.desk()!r}\n'
                  'try:\n'
                  '    print(os.listdir(d))\n'
                  'except OSError as e:\n'
                  '    print("list", type(e).__name__)\n'
                  'for name in ("NAME", ".NAME"):\n'
                  '    s = socket.socket(socket.AF_UNIX)\n'
                  '    try:\n'
                  '        s.connect(os.path.join(d, name)); print("IN", s.recv(9))\n'
                  '    except OSError as e:\n'
                  '        print("connect", type(e).__name__)\n'
                  'END\n')
        run = self.begin(script=f"while test ! -e go; do sleep 0.05; done; NAME=$(cat go); {script}"
                                .replace('("NAME", ".NAME")', '("$NAME", ".$NAME")'), wait=False)
        self.assertTrue(wait_until(lambda: os.path.isdir(self.desk()) and os.listdir(self.desk())))
        self.write("project/go.tmp", os.listdir(self.desk())[0])
        os.rename(os.path.join(self.project, "go.tmp"), os.path.join(self.project, "go"))
        out, status = self.finish(run)
        self.assertEqual(out.split("\n")[:3], ["list PermissionError", "connect PermissionError",
                                               "connect FileNotFoundError"])

    def test_the_command_of_another_run_can_not_answer(self):
        """Not where its own warder, with its files elsewhere, may connect it to the desk."""
        run = self.begin()
        path = os.path.join(self.desk(), os.listdir(self.desk())[0])
        env = {**self.env, "XDG_STATE_HOME": os.path.join(self.dir, "state2"),
               "XDG_CONFIG_HOME": os.path.join(self.dir, "config2")}
        code = ("import socket,sys; s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); print('connected')\n"
                "try: print(s.recv(100))\nexcept ConnectionResetError: print(b'')")
        done = self.native(WARDER, "run", "--rule", f"allow connect {self.desk()}", "--", "/usr/bin/python3", "-c", code,
                           path, env=env)
        self.assertEqual("connected\nb''\n", done.out, str(done))
        # So is `warder ask` inside; the user's own still comes in.
        done = self.native(WARDER, "run", "--rule", f"allow rwx {self.dir}", "--rule", f"allow connect {self.desk()}",
                           "--", "env", f"XDG_STATE_HOME={self.dir}/state", f"XDG_CONFIG_HOME={self.dir}/config",
                           WARDER, "ask", "--json", env=env)
        self.assertNotIn('"ask"', done.out, str(done))
        visitor = Visitor(self)
        visitor.say(id=visitor.next("ask")["id"], answer="allow")
        self.assertEqual(self.finish(run), ("found\n", 0))

    def test_a_stranger_is_shown_out(self):
        if os.getuid() or self.uid:
            self.skipTest("needs root and another user")
        run = self.begin()
        os.chmod(self.desk(), 0o755)
        for up in (self.dir, os.path.join(self.dir, "state"), os.path.join(self.dir, "state/warder")):
            os.chmod(up, 0o755)
        path = os.path.join(self.desk(), os.listdir(self.desk())[0])
        os.chmod(path, 0o777)
        code = ("import socket,sys; s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); "
                "print(s.recv(100))")
        p = subprocess.run(["/usr/bin/python3", "-c", code, path], user=65534, group=65534,
                           extra_groups=[], capture_output=True, text=True, timeout=TIMEOUT)
        self.assertIn(p.stdout.strip() or "reset", ("b''", "reset"), p.stdout + p.stderr)
        run.kill()

    def test_a_visitor_who_reads_nothing_holds_nobody_up(self):
        run = self.begin(script='for i in 1 2 3; do cat "$1"; done')
        name = os.listdir(self.desk())[0]
        idle = [socket.socket(socket.AF_UNIX) for _ in range(6)]
        for s in idle:
            self.addCleanup(s.close)
            s.connect(os.path.join(self.desk(), name))
        for s in idle[1:]:
            s.close()
        visitor = Visitor(self)
        for _ in range(3):
            visitor.say(id=visitor.next("ask")["id"], answer="allow")
        self.assertEqual(self.finish(run), ("found\n" * 3, 0))


if __name__ == "__main__":
    main()
