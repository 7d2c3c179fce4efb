#!/usr/bin/env python3
"""`warder agent` in a real terminal (tmux): what stands on the screen, at any width, whatever interrupts it."""

import json
import os
import re
import signal
import subprocess
import time
import unittest

from tmux_help import WARDER, Terminal


def assistant(text="", *calls):
    message = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = [
            {"id": f"call_{i}", "type": "function", "function": {"name": n, "arguments": json.dumps(a)}}
            for i, (n, a) in enumerate(calls)]
    return json.dumps(message)


def shell(command):
    return ("run_shell", {"command": command})


MARKDOWN = """# Plan

Some *text* that is **long** enough to be wrapped at forty columns, with `code` in it.

- first
- second, which goes on for more than a line
  - nested

| file | lines |
|------|------:|
| a.c  | 10    |
| 漢字 | 200   |

```c
int main(void) { return 0; }
```

[The docs](https://example.org/x).
"""


class Screen(unittest.TestCase):
    def terminal(self, **options):
        t = Terminal(**options)
        t.__enter__()
        self.addCleanup(t.__exit__)
        return t

    def start(self, t, *lines, more="", trust="2", env=""):
        path = os.path.join(t.folder, "script.jsonl")
        with open(path, "w", encoding="utf-8") as f:
            f.write("\n".join(lines) + "\n")
        t.line(f"clear; {env} warder agent --script {path} {more}")
        if trust:
            t.wait_for("Enter: 3]")
            t.line(trust)
        t.wait_for("warder>")

    def pid_of(self, t):
        """The agent's, by its script: the terminal's own child."""
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as f:
                    words = f.read().split(b"\0")
            except OSError:
                continue
            if words[:2] == [b"warder", b"agent"] and t.folder.encode() in b" ".join(words):
                return int(pid)
        raise AssertionError("no agent")

    def test_markdown_is_laid_out_for_the_width(self):
        t = self.terminal(width=40, height=40)
        self.start(t, assistant(MARKDOWN), assistant("Some text that is long enough to be wrapped at thirty columns."))
        t.line("go")
        shown = t.wait_for("The docs")
        lines = [line.rstrip() for line in shown.splitlines()]
        for expected in ("Plan", "Some text that is long enough to be", "wrapped at forty columns, with code in", "• first",
                         "• second, which goes on for more than a", "  line", "  • nested",
                         "file  lines", "────  ─────", "a.c      10", "漢字    200",
                         "    int main(void) { return 0; }", "The docs (https://example.org/x)."):
            self.assertIn(expected, lines, shown)
        t.resize(30, 40)
        t.line("go on")
        shown = t.wait_for("\ncolumns.")
        self.assertIn("Some text that is long enough", [line.rstrip() for line in shown.splitlines()])

    def test_a_call_is_one_line_that_opens(self):
        t = self.terminal(width=90, height=45)
        self.start(t, assistant("", shell("seq 1 60"), ("read_file", {"path": "absent"})), assistant("Done."))
        t.line("go")
        shown = t.wait_for("Done.")
        self.assertIn("> run_shell seq 1 60\n", shown)
        self.assertIn("  [40 more lines: /details 1]\n  [1: exit 0]", shown)
        self.assertIn("> read_file absent [2: No such file or directory]\n\nDone.", shown)
        t.keys("C-o")
        shown = t.wait_for("message: No such file")
        self.assertIn("2: read_file [No such file or directory]", shown)
        t.line("/details 1")
        t.wait_for_that(lambda s: s.splitlines()[-1] == ":")
        t.keys("G")
        self.assertIn("    60\n", t.wait_for("exit: 0"))
        t.keys("q")
        t.line("/details 9")
        t.wait_for("no tool call with this number")

    def test_what_is_longer_than_the_screen_is_paged(self):
        for pager, paged in ((None, True), ("less -P Paged", True), ("cat", False), ("", False), ("no-such-pager", False)):
            t = self.terminal(width=60, height=15)
            self.start(t, assistant("", shell("seq 1 60"), shell("echo short")), assistant("Done."),
                       env="" if pager is None else f"PAGER='{pager}'")
            t.line("go")
            t.wait_for("Done.")
            t.keys("C-l")
            t.line("/details 1")
            if paged:
                shown = t.wait_for_that(lambda s: s.splitlines()[-1].startswith("Paged" if pager else ":"))
                self.assertIn("1: run_shell [exit 0]\n  command: seq 1 60\n", shown)
                t.keys("C-c")  # is less's own
                t.keys("G")
                t.wait_for("exit: 0")
                t.keys("q")
            t.wait_for_that(lambda s: s.rstrip().endswith("warder>") and "    60\n" in s)
            t.line("/details 2")  # it fits
            t.wait_for_that(lambda s: "warder>" in "".join(s.split("2: run_shell")[1:]))
            t.line("/usage")
            t.wait_for("1 turn")

    def test_a_calls_line_is_as_long_as_the_terminal_is_wide(self):
        words = " ".join(f"word{i}" for i in range(40))
        for width in (36, 72, 160):
            t = self.terminal(width=width, height=30)
            self.start(t, assistant("", shell(f"true {words}"), shell(f"echo {words[:99]}; true {words}")),
                       assistant("", shell("true")), assistant("Done."))
            t.keys("C-l")
            t.line("go")
            lines = t.wait_for("Done.").splitlines()
            calls = [i for i, line in enumerate(lines) if line.startswith("> run_shell")]
            self.assertEqual(len(calls), 3, lines)
            for at in calls[:2]:  # cut in the middle, nothing of it on a second line
                self.assertIn(len(lines[at]), (width - 1, width - 2), lines)
                self.assertRegex(lines[at], f"(?s)…..*{re.escape(words[-4:])}$")
            self.assertEqual(lines[calls[0] + 1], "  [1: exit 0]", lines)
            self.assertEqual(lines[calls[2]], "> run_shell true [3: exit 0]", lines)

    def test_what_is_waited_for_is_said_and_gone_afterwards(self):
        t = self.terminal(width=90)
        gate = os.path.join(t.project, "gate")
        self.start(t, assistant("", shell(f"until [ -e {gate} ]; do sleep 0.1; done")), assistant("Done."))
        t.line("go")
        shown = t.wait_for(" s)")
        self.assertRegex(shown, r"[⠀-⣿] run_shell until \[ -e .* \([0-9]+ s\)")
        with open(gate, "w", encoding="utf-8"):
            pass
        shown = t.wait_for("Done.")
        self.assertNotRegex(shown, "[⠀-⣿]")

    def test_the_commands_fit_the_screen(self):
        t = self.terminal(width=80, height=24)
        self.start(t, assistant("one"))
        t.keys("C-l")
        t.line("/help")
        shown = t.wait_for("list_dir, run_shell.")
        self.assertIn("warder> /help\n", shown)  # all of it is there
        self.assertLess(max(map(len, shown.splitlines())), 80)
        t.keys("C-l")
        t.line("/detect")
        self.assertIn("\n           what programs print is never read", t.wait_for("on this terminal"))

    def test_what_is_told_breaks_between_words(self):
        t = self.terminal(width=60, height=24)
        shown = t.run("clear; warder agent --endpoint http://127.0.0.1:9/v1 -p go")
        told = re.search(r"^warder: .*127\.0\.0\.1.*\n((        \S.*\n)+)", shown, re.M)
        self.assertTrue(told, shown)
        self.assertLess(max(map(len, shown.splitlines())), 60)

    def test_entries_of_several_lines_and_completion(self):
        t = self.terminal(width=90, height=30)
        with open(os.path.join(t.project, "some-file.txt"), "w", encoding="utf-8"):
            pass
        self.start(t, assistant("One."), assistant("Two."), assistant("Three."))
        t.keys("/us", "Tab")
        t.wait_for("/usage")
        t.keys("Enter")
        t.wait_for("0 turns")
        t.keys("/mod", "Tab", "Tab")
        self.assertIn("/model  /models", t.wait_for("/models"))
        t.keys("C-u")
        t.keys("-l", "look at some")
        t.keys("Tab")
        t.wait_for("look at some-file.txt")
        t.keys("M-Enter")
        t.keys("-l", "second line")
        t.keys("Enter")
        t.wait_for("One.")
        # Pasted text is no key, however many lines it has.
        t.tmux("set-buffer", "pasted one\n/quit\npasted three")
        t.tmux("paste-buffer", "-p")
        t.wait_for("pasted three")
        t.keys("Enter")
        t.wait_for("Two.")
        t.line("/quit")
        t.wait_for("ready>")
        session = os.path.join(t.folder, "home/.state/warder/sessions")
        (name,) = os.listdir(session)
        with open(os.path.join(session, name), encoding="utf-8") as f:
            said = [json.loads(line) for line in f]
        words = [m["message"]["content"] for m in said if m.get("message", {}).get("role") == "user"]
        self.assertEqual(words, ["look at some-file.txt \nsecond line", "pasted one\n/quit\npasted three"])

    def test_the_line_follows_a_resize(self):
        t = self.terminal(width=80, height=20)
        self.start(t, assistant("One."))
        t.keys("-l", "a line of words that is typed before the window is made smaller")
        t.wait_for("smaller")
        t.resize(40, 20)
        t.keys("-l", " END")
        shown = t.wait_for("END")
        self.assertIn("made smaller END", shown.replace("\n", ""))
        t.keys("Enter")
        t.wait_for("One.")

    def test_the_terminal_is_put_back_whatever_ends_it(self):
        for sig in (signal.SIGTERM, signal.SIGHUP, signal.SIGKILL):
            for busy in (False, True):
                t = self.terminal()
                t.run("stty -g >before")
                self.start(t, assistant("", shell("echo begun; sleep 60")), assistant("no"))
                if busy:
                    t.line("go")
                    t.wait_for("begun")
                    os.kill(self.pid_of(t), sig)
                    t.wait_for("ready>")
                elif sig == signal.SIGKILL:
                    continue  # nobody could put it back at the prompt
                else:
                    os.kill(self.pid_of(t), sig)
                    t.wait_for("ready>")
                t.run("stty -g >after; cmp before after && echo same")
                self.assertIn("same", t.screen(), (sig, busy))

    def test_a_whole_session_and_on_after_kill_9(self):
        t = self.terminal(width=100, height=40)
        secret = t.write_outside("notes.txt", "the notes outside\n")
        self.start(t, assistant("I read **it**.", ("read_file", {"path": secret})), assistant("Read."),
                   assistant("", shell("echo begun; sleep 60")))
        t.line("read the notes")
        t.wait_for("[?] help")
        t.keys("y")
        shown = t.wait_for("Read.")
        self.assertIn("I read it.", shown)
        t.line("and again")
        t.wait_for("begun")
        os.kill(self.pid_of(t), signal.SIGKILL)
        t.wait_for("ready>")
        self.start(t, assistant("Here I am."), more="--resume", trust="")
        t.line("go on")
        t.wait_for("Here I am.")
        t.line("/sessions")
        self.assertIn("read the notes", t.wait_for("read the notes"))
        t.line("/usage")
        t.wait_for("2 turns")
        t.line("/quit")
        t.wait_for("ready>")

    def test_no_color_dumb_terminals_and_pipes(self):
        t = self.terminal(width=80, height=30)
        script = os.path.join(t.folder, "script.jsonl")
        with open(script, "w", encoding="utf-8") as f:
            f.write(assistant("# Plan\n\n**bold** `code`", shell("echo out")) + "\n" + assistant("Done.") + "\n")
        t.run(f"warder agent --script {script} -p go >text 2>side; cat -v text side")
        shown = t.screen()
        self.assertIn("# Plan\n\n**bold** `code`\nDone.\n> run_shell echo out\n  [exit 0]", shown)
        t.run(f"clear; NO_COLOR=1 script -qec 'warder agent --script {script} -p go' raw >/dev/null; cat -v raw")
        shown = t.screen()
        self.assertIn("# Plan^M\n^M\nbold `code`^M", shown)
        self.assertNotRegex(shown, r"\^\[\[[0-9;]*m")
        t.run(f"clear; TERM=dumb script -qec 'warder agent --script {script} -p go' raw >/dev/null; cat -v raw")
        shown = t.screen()
        self.assertIn("**bold** `code`", shown)
        self.assertNotIn("^[", shown)


if __name__ == "__main__":
    unittest.main(verbosity=2)
