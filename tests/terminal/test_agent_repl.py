#!/usr/bin/env python3
"""Drives the real `warder agent` at a real pseudo-terminal: keys in, screen out.

WARDER names the binary. Everything happens below a directory of the test's own; as root each test
runs a second time as an ordinary user.
"""

import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

WARDER = os.environ.get("WARDER", "build/agent/warder")
PATIENCE = 30.0  # seconds for anything to appear
NOBODY = 65534


def assistant(text="", *calls):
    """One line of a script: calls are (name, arguments)."""
    message = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = [
            {
                "id": f"call_{i}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments)},
            }
            for i, (name, arguments) in enumerate(calls)
        ]
    return json.dumps(message)


# A time no other test sleeps, so that what is left of it can be found.
NAP = f"1234.{os.getpid()}"

class Agent:
    """A `warder agent` on a pseudo-terminal of its own."""

    def __init__(self, place, arguments=(), term="xterm", uid=None, shell=False):
        """shell: as a job of an interactive shell, whose prompt is "sh: "."""
        self.seen = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                os.chdir(place.project)
                if uid is not None:
                    os.setgroups([])
                    os.setgid(uid)
                    os.setuid(uid)
                environment = dict(place.environment, TERM=term, PS1="sh: ")
                if shell:
                    os.execve("/bin/bash", ["bash", "--norc", "--noediting", "-i"], environment)
                self.exec(place, arguments, environment)
            finally:
                os._exit(99)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))

    def exec(self, place, arguments, environment):
        os.execve(place.warder, ["warder", "agent", *arguments], environment)

    def pump(self, seconds):
        """Read what comes within so many seconds; False once the other side is gone."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            return False
        self.seen += data.decode("utf-8", "replace")
        return bool(data)

    def expect(self, pattern):
        """Wait for it; return what stood before and including it, which counts as read."""
        end = time.monotonic() + PATIENCE
        while True:
            found = re.search(pattern, self.seen, re.S)
            if found:
                head, self.seen = self.seen[: found.end()], self.seen[found.end() :]
                return head
            if time.monotonic() > end or not self.pump(0.2):
                found = re.search(pattern, self.seen, re.S)
                if found:
                    continue
                raise AssertionError(f"{pattern!r} did not appear in:\n{self.seen!r}")

    def quiet(self, seconds):
        """What appears within so many seconds."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.pump(0.05):
            pass
        text, self.seen = self.seen, ""
        return text

    def keys(self, text):
        os.write(self.fd, text.encode())

    def answer(self, key):
        """To a question, once its last line names the keys: none counts before."""
        shown = self.expect(r"\[?y\]?.{0,12}once.*?help")
        self.keys(key)
        return shown

    def trust(self, key):
        """The first start in a directory asks what may be done there."""
        shown = self.expect(r"Enter: 3\] ")
        self.keys(key + "\r")
        return shown

    def modes(self):
        return termios.tcgetattr(self.fd)

    def editing_modes(self):
        """Once the line editor has taken the terminal."""
        end = time.monotonic() + PATIENCE
        while self.modes()[3] & termios.ICANON and time.monotonic() < end:
            self.pump(0.05)
        return self.modes()

    def wait(self):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            self.pump(0.05)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.pid = 0
                return os.waitstatus_to_exitcode(status)
        raise AssertionError("it did not end")

    def close(self):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)


class Place:
    """A project, something outside of it, and a home of its own."""

    def __init__(self, uid=None):
        self.top = tempfile.mkdtemp(prefix="warder-repl-", dir="/var/tmp")
        self.project = os.path.join(self.top, "project")
        self.outside = os.path.join(self.top, "outside")
        self.home = os.path.join(self.top, "home")
        tmp = os.path.join(self.top, "tmp")  # what an agent that is killed leaves is removed with it
        for path in (self.project, self.outside, self.home, tmp):
            os.mkdir(path)
        with open(os.path.join(self.outside, "notes.txt"), "w") as f:
            f.write("the notes outside\n")
        # Where the build is may be closed to other users.
        self.warder = shutil.copy(WARDER, os.path.join(self.top, "warder"))
        self.environment = {
            "HOME": self.home,
            "TMPDIR": tmp,
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "WARDER_COPILOT_TOKEN": "",
            "PAGER": "cat",
        }
        if uid is not None:
            subprocess.run(["chown", "-R", f"{uid}:{uid}", self.top], check=True)

    def script(self, *lines):
        path = os.path.join(self.top, "script.jsonl")
        with open(path, "w") as f:
            f.write("\n".join(lines) + "\n")
        os.chmod(path, 0o644)
        return ["--script", path]

    def remove(self):
        shutil.rmtree(self.top, ignore_errors=True)


READ_NOTES = ("read_file", {"path": "../outside/notes.txt"})


class Repl(unittest.TestCase):
    uid = None

    def setUp(self):
        self.place = Place(self.uid)
        self.addCleanup(self.place.remove)

    def start(self, *lines, term="xterm", more=()):
        arguments = self.place.script(*lines) if lines else []
        agent = Agent(self.place, [*arguments, *more], term, self.uid)
        self.addCleanup(agent.close)
        return agent

    def ready(self, *lines, **options):
        agent = self.start(*lines, **options)
        agent.trust("2")
        agent.expect("warder> ")
        return agent

    def test_a_refused_read_is_asked_granted_and_goes_on(self):
        agent = self.ready(
            assistant("I read the notes.", READ_NOTES),
            assistant("", ("run_shell", {"command": "cat ../outside/notes.txt"})),
            assistant("Both were read."),
        )
        at_prompt = agent.editing_modes()
        agent.keys("go\r")
        shown = agent.answer("s")
        self.assertIn(self.place.outside + "/notes.txt", shown)
        self.assertIn("read", shown)
        # The answer is for the session: the shell's own read asks nothing.
        output = agent.expect("Both were read.")
        self.assertIn("the notes outside", output)
        self.assertNotIn("once", output)
        agent.expect("warder> ")
        self.assertEqual(agent.editing_modes(), at_prompt)
        agent.keys("/grants\r")
        granted = agent.expect("Rules from your answers:.*warder> ")
        self.assertIn(f"allow read {self.place.outside}/notes.txt", granted)
        agent.keys("/denials\r")
        agent.expect("Nothing was refused yet")
        agent.keys("/quit\r")
        self.assertEqual(agent.wait(), 0)

    def test_no_is_remembered_and_the_third_time_stops(self):
        agent = self.ready(
            *[assistant(f"try {i}", READ_NOTES) for i in range(21)], assistant("never said")
        )
        agent.keys("go\r")
        agent.answer("n")
        rest = agent.expect("warder> ")
        self.assertIn("third time", rest)
        # Asked once, run twice, and the model was not asked a fourth time.
        self.assertNotIn("once", rest)
        self.assertIn("try 2", rest)
        self.assertNotIn("try 3", rest)
        agent.keys("/denials\r")
        listed = agent.expect("notes.txt.*\\)\r\n")
        self.assertIn("refused by user", listed)
        self.assertIn("read", listed)

    def test_output_does_not_mix_with_a_question(self):
        noisy = "for i in 1 2 3 4 5 6 7 8 9; do echo tick $i; sleep 0.2; done"
        agent = self.ready(
            assistant("", ("run_shell", {"command": f"({noisy}) & cat ../outside/notes.txt; wait"})),
            assistant("Finished."),
        )
        agent.keys("go\r")
        agent.expect(r"\[?y\]?.{0,12}once.*?help")
        agent.quiet(0.2)
        self.assertNotIn("tick", agent.quiet(1.0))
        agent.keys("y")
        after = agent.expect("Finished.")
        for i in range(5, 10):
            self.assertIn(f"tick {i}", after)
        self.assertIn("the notes outside", after)

    def test_ctrl_c_clears_the_line_and_ctrl_d_ends(self):
        agent = self.ready(assistant("one"))
        agent.keys("/quit")
        agent.expect("/quit")
        agent.keys("\x03")
        agent.expect("warder> ")
        agent.keys("/usage\r")
        agent.expect("0 turns")
        agent.expect("warder> ")
        agent.keys("\x04")
        self.assertEqual(agent.wait(), 0)

    def test_ctrl_c_stops_a_tool_and_keeps_the_conversation(self):
        agent = self.ready(
            assistant("", ("run_shell", {"command": f"echo begun; sleep {NAP}5"})),
            assistant("And on it goes."),
        )
        agent.keys("go\r")
        agent.expect(r"\n\S*  begun")
        began = time.monotonic()
        agent.keys("\x03")
        stopped = agent.expect("warder> ")
        self.assertIn("cancelled", stopped)
        self.assertLess(time.monotonic() - began, 10)
        left = subprocess.run(["pgrep", "-f", f"sleep {NAP}5"], capture_output=True, text=True)
        self.assertEqual(left.stdout, "")
        agent.keys("go on\r")
        agent.expect("And on it goes.")
        agent.expect("warder> ")

    def test_ctrl_c_at_any_moment_leads_back_to_the_prompt(self):
        work = assistant("# Working", ("run_shell", {"command": f"echo begun; cat {self.place.outside}/notes.txt; sleep {NAP}7"}))
        agent = self.ready(*[work] * 40)
        at_prompt = agent.editing_modes()
        for delay in (0, 0.01, 0.03, 0.06, 0.1, 0.2, 0.4, 0.8):
            agent.keys("go\r")
            time.sleep(delay)
            agent.keys("\x03")
            agent.expect("warder> ")
            # It is a prompt, and no word of before comes after it.
            agent.keys("/usage\r")
            agent.expect("turns?.*warder> ")
            self.assertEqual(agent.editing_modes(), at_prompt, delay)
        left = subprocess.run(["pgrep", "-f", f"sleep {NAP}7"], capture_output=True, text=True)
        self.assertEqual(left.stdout, "")
        agent.keys("/quit\r")
        self.assertEqual(agent.wait(), 0)

    def test_stop_and_continue_keep_what_was_typed(self):
        agent = Agent(self.place, uid=self.uid, shell=True)
        self.addCleanup(agent.close)
        agent.expect("sh: ")
        script = self.place.script(assistant("one"))[1]
        agent.keys(f"{self.place.warder} agent --script {script}\r")
        agent.trust("2")
        agent.expect("warder> ")
        agent.keys("/us")
        agent.expect("/us")
        agent.keys("\x1a")
        agent.expect("Stopped.*sh: ")
        self.assertTrue(agent.modes()[3] & termios.ICANON, "the terminal was left raw")
        agent.keys("fg\r")
        agent.expect("warder> ")
        agent.keys("age\r")
        agent.expect("0 turns")
        agent.keys("/quit\r")
        agent.expect("sh: ")

    def test_what_is_typed_while_it_works_is_there_at_the_next_prompt(self):
        gate = os.path.join(self.place.project, "gate")
        wait = f"echo begun; until [ -e {gate} ]; do sleep 0.1; done"
        agent = self.ready(assistant("", ("run_shell", {"command": wait})), assistant("First done."),
                           assistant("", ("run_shell", {"command": f"echo begun; sleep {NAP}8"})))
        at_prompt = agent.editing_modes()
        agent.keys("go\r")
        agent.expect(r"\n\S*  begun")
        agent.keys("and then\r")
        self.assertNotIn("and", agent.quiet(1))
        with open(gate, "w"):
            pass
        self.assertNotIn("and", agent.expect("First done."))
        agent.expect(r"warder> .*and then\r.*begun")
        agent.keys("half a li")
        self.assertNotIn("half", agent.quiet(0.5))
        began = time.monotonic()
        agent.keys("\x03")
        agent.expect("cancelled.*warder> ")
        self.assertLess(time.monotonic() - began, 10)
        self.assertEqual(agent.editing_modes(), at_prompt)
        agent.keys("/usage\r")
        agent.expect("turns.*warder> ")

    def test_stopped_while_it_works_the_terminal_is_as_before(self):
        agent = Agent(self.place, uid=self.uid, shell=True)
        self.addCleanup(agent.close)
        agent.expect("sh: ")
        before = agent.modes()
        gate = os.path.join(self.place.project, "gate")
        wait = f"echo begun; until [ -e {gate} ]; do sleep 0.1; done"
        script = self.place.script(assistant("", ("run_shell", {"command": wait})), assistant("First done."))[1]
        # A shell that puts nothing back itself.
        agent.keys(f"sh -c 'set -m; {self.place.warder} agent --script {script}; stty -a; fg'; echo \"e\"nded\r")
        agent.trust("2")
        agent.expect("warder> ")
        agent.keys("go\r")
        agent.expect(r"\n\S*  begun")
        agent.keys("\x1a")
        modes = agent.expect("iutf8?.*echoctl")
        for mode in (" icanon", " echo ", " iexten"):
            self.assertIn(mode, modes.replace("\r\n", " "))
        agent.expect("[⠀-⣿]")
        agent.keys("later")
        self.assertNotIn("later", agent.quiet(1))
        with open(gate, "w"):
            pass
        agent.expect("First done.*warder> .*later")
        agent.keys("\x03")
        agent.expect("warder> ")
        agent.keys("\x04")
        agent.expect("ended")
        agent.expect("sh: ")
        self.assertEqual(agent.modes(), before)

    def test_the_models_and_the_tools_words_never_move_the_terminal(self):
        evil = "clear\x1b[2J\x1b]0;title\x07 \u202egnirts\n\tkept"
        agent = self.ready(
            assistant(evil, ("run_shell", {"command": "printf 'out\\033[2Jput\\a\\n'"})),
            assistant("", ("read_file", {"path": "a\x1b[31mb"})),
            assistant("End."),
        )
        agent.keys("go\r")
        shown = agent.expect("End.")
        for bad in ("\x1b[2J", "\x1b]0;", "\x07", "\u202e", "\x1b[31mb"):
            self.assertNotIn(bad, shown)
        self.assertIn("clear\\e[2J", shown)
        self.assertIn("out\\e[2Jput", shown)
        self.assertIn("gnirts kept", shown)

    def test_a_backslash_goes_on_and_the_history_is_private(self):
        agent = self.ready(assistant("one"))
        agent.keys("first\\\r")
        agent.expect(r"\.\.\.> ")
        agent.keys("second\r")
        agent.expect("one")
        agent.expect("warder> ")
        agent.keys("/quit\r")
        self.assertEqual(agent.wait(), 0)
        history = os.path.join(self.place.home, ".local/state/warder/history")
        self.assertEqual(stat.S_IMODE(os.stat(history).st_mode), 0o600)
        with open(history) as f:
            self.assertIn("first\\012second", f.read())

    def test_the_commands_answer(self):
        agent = self.ready(assistant("one"))
        for line, expected in (
            ("/help", "run_shell"),
            ("/detect", "wall: +Landlock ABI [0-9]+.*on denial: auto"),
            ("/detect report", "on denial: report"),
            ("/detect hold", "on denial: hold"),
            ("/detect loud", "takes auto, hold"),
            ("/policy", f"allow rwx {self.place.project} .*# preset project"),
            ("/model gpt-x", "script, model gpt-x"),
            ("/nonsense", "There is no /nonsense; /help lists the commands."),
            ("/clear", "is forgotten"),
            ("/usr/bin/cc is what?", "one"),
        ):
            agent.keys(line + "\r")
            agent.expect(expected)
            agent.expect("warder> ")

    def test_retry_asks_at_the_end_and_again_before_it_runs_again(self):
        agent = self.ready(
            assistant("", ("run_shell", {"command": "echo run >> count; cat ../outside/notes.txt"})),
            assistant("End."),
            more=["--on-denial", "retry"],
        )
        agent.keys("go\r")
        self.assertIn("Permission denied", agent.answer("s"))
        again = agent.expect("run it again.*help")
        self.assertIn(self.place.project + "/count", again)
        agent.keys("y")
        self.assertIn("the notes outside", agent.expect("End."))
        with open(os.path.join(self.place.project, "count")) as f:
            self.assertEqual(f.read(), "run\nrun\n")

    def test_the_built_in_demonstration(self):
        agent = self.start()
        self.assertIn("no account was found", agent.trust("2"))
        agent.expect("warder> ")
        agent.keys("show me\r")
        before = agent.answer("y")
        self.assertIn("hello from inside the wall", before)
        self.assertIn("ls asks to list", before)
        self.assertIn("  path     ~\r", before)
        rest = agent.expect("Done: .*warder> ")
        self.assertNotIn("refused", rest)
        agent.keys("more\r")
        agent.expect("no more answers.*start again")
        agent.expect("warder> ")
        agent.keys("/exit\r")
        self.assertEqual(agent.wait(), 0)

    def test_report_mode_asks_nothing(self):
        agent = self.ready(assistant("", READ_NOTES), assistant("Told."))
        agent.keys("/detect report\r")
        agent.expect("on denial: report")
        agent.keys("go\r")
        shown = agent.expect("Told.")
        self.assertIn("refused", shown)
        self.assertNotIn("once", shown)

    def test_the_first_start_asks_what_may_be_done_and_remembers(self):
        write = assistant("", ("write_file", {"path": "new.txt", "content": "x\n"}))
        agent = self.start(write, assistant("End."))
        shown = agent.expect(r"Enter: 3\] ")
        self.assertIn(self.place.project, shown)
        self.assertRegex(shown, r"(?s)1 +read .*2 +write .*3 +ask ")
        agent.keys("nonsense\r")
        agent.expect(r"Enter: 3\] ")
        agent.keys("1\r")
        agent.expect("warder> ")
        # What would be written is shown before it is asked about.
        agent.keys("go\r")
        before = agent.answer("n")
        self.assertRegex(before, r"(?s)\+x.*asks to (create|write)")
        agent.expect("End.")
        agent.keys("/trust\r")
        agent.expect("read: read and run")
        agent.keys("/trust write\r")
        agent.expect("from the next start on")
        agent.keys("/quit\r")
        self.assertEqual(agent.wait(), 0)
        kept = os.path.join(self.place.home, ".local/state/warder/trust.jsonl")
        self.assertEqual(stat.S_IMODE(os.stat(kept).st_mode), 0o600)
        # Asked once: not at the next start, which has what was said last.
        agent = self.start(write, assistant("End."))
        self.assertNotIn("Enter: 3", agent.expect("warder> "))
        agent.keys("go\r")
        self.assertNotIn("once", agent.expect("End."))
        self.assertTrue(os.path.exists(os.path.join(self.place.project, "new.txt")))

    def test_a_projects_own_policy_is_shown_and_used_when_accepted(self):
        proposal = os.path.join(self.place.project, ".warder.policy")
        with open(proposal, "w") as f:
            f.write(f"allow r {self.place.outside}\n")
        script = assistant("", READ_NOTES), assistant("End.")
        # Refused: not used, and the same text is not offered again.
        agent = self.start(*script)
        agent.trust("2")
        self.assertIn(f"+ allow r {self.place.outside}", agent.expect(r"\[y/N\] "))
        agent.keys("\r")
        agent.expect("warder> ")
        agent.keys("go\r")
        agent.answer("n")
        agent.expect("End.")
        agent.keys("/quit\r")
        self.assertRegex(agent.expect("goes on here"), "warder agent --resume [0-9a-f-]+ ")
        self.assertEqual(agent.wait(), 0)
        agent = self.start(*script)
        self.assertNotIn("[y/N]", agent.expect("warder> "))
        agent.keys("/quit\r")
        agent.wait()
        # Another text is, and counts once it was accepted.
        with open(proposal, "a") as f:
            f.write("# again\n")
        agent = self.start(*script, more=["--resume"])
        agent.expect(r"\[y/N\] ")
        agent.keys("y\r")
        self.assertIn("Going on in session", agent.expect("warder> "))
        agent.keys("go\r")
        self.assertNotIn("once", agent.expect("End."))

    def test_no_answer_at_the_first_start_starts_nothing(self):
        for key, status in (("\x04", 0), ("\x03", 0)):
            agent = self.start(assistant("one"))
            agent.expect(r"Enter: 3\] ")
            agent.keys(key)
            self.assertEqual(agent.wait(), status)
        # Nothing was remembered; Enter is the narrowest.
        agent = self.start(assistant("", ("read_file", {"path": "a"})), assistant("End."))
        with open(os.path.join(self.place.project, "a"), "w") as f:
            f.write("inside\n")
        agent.trust("")
        agent.expect("warder> ")
        agent.keys("go\r")
        self.assertIn("asks to read", agent.answer("n"))
        agent.expect("End.")
        # What was said counts where nobody is asked, too.
        as_user = {} if self.uid is None else {"user": self.uid, "group": self.uid, "extra_groups": []}
        done = subprocess.run(
            [self.place.warder, "agent", *self.place.script(assistant("", ("read_file", {"path": "a"})), assistant("Told.")),
             "-p", "go", "--output", "json"], cwd=self.place.project, env=self.place.environment, text=True,
            stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE, start_new_session=True, **as_user)
        (denied,) = json.loads(done.stdout)["denials"]
        self.assertEqual((denied["path"], denied["by"]), (self.place.project + "/a", "none"))
        served = subprocess.run(
            [self.place.warder, "mcp"], cwd=self.place.project, env=self.place.environment, text=True,
            input='{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}\n'
                  '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"read_file","arguments":{"path":"a"}}}\n'
                  '{"jsonrpc":"2.0","id":3,"method":"ping"}\n',
            capture_output=True, timeout=PATIENCE, start_new_session=True, **as_user)
        self.assertEqual((served.returncode, served.stderr), (0, ""))

    def test_a_dumb_terminal_is_enough(self):
        agent = self.ready(assistant("Hello."), term="dumb")
        agent.keys("go\r")
        shown = agent.expect("Hello.")
        self.assertNotIn("\x1b", shown)
        agent.expect("warder> ")
        agent.keys("half a li\x03")
        agent.expect("warder> ")
        agent.keys("/usage\r")
        agent.expect(r"1 turn\b")
        agent.keys("\x04")
        self.assertEqual(agent.wait(), 0)

    def test_a_signal_to_end_ends_by_that_signal(self):
        agent = self.ready(
            assistant("", ("run_shell", {"command": f"echo begun; sleep {NAP}6"})), assistant("no")
        )
        agent.keys("go\r")
        agent.expect(r"\n\S*  begun")
        os.kill(agent.pid, signal.SIGTERM)
        self.assertEqual(agent.wait(), -signal.SIGTERM)
        left = subprocess.run(["pgrep", "-f", f"sleep {NAP}6"], capture_output=True, text=True)
        self.assertEqual(left.stdout, "")


@unittest.skipUnless(os.geteuid() == 0, "runs as an ordinary user already")
class ReplAsUser(Repl):
    uid = NOBODY


if __name__ == "__main__":
    if not os.access(WARDER, os.X_OK):
        sys.exit(f"no binary at {WARDER}: set WARDER")
    unittest.main(verbosity=2)
