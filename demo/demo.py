#!/usr/bin/env python3
"""demo.py WARDER: the main job, shown on a real terminal and checked.

An agent (answers from demo/script.jsonl, as `warder agent --provider script` has them inside: no account, no
network) writes and compiles a program, then lists the home directory, which is outside of its project. The kernel refuses that, the question appears, this program
types the answer as a person would, and the call goes on in place. The same again with `warder
run`, whose report is shown. Exits 1 where anything is not as promised.
"""

import fcntl
import json
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import time

LIMIT = 60  # seconds for one command
READING_TIME = 3 if sys.stdout.isatty() else 0.8  # a person reads the question


def paint(text, code):
    plain = not sys.stdout.isatty() or os.environ.get("NO_COLOR") or terminal() == "dumb"
    return text if plain else f"\033[{code}m{text}\033[0m"


def terminal():
    """The TERM of what is shown: in a file or a pipe nothing can be painted over."""
    return os.environ.get("TERM", "dumb") if sys.stdout.isatty() else "dumb"


def say(text):
    print("\n" + paint("# " + text, "36"), flush=True)


def converse(argv, cwd, env, next_keys):
    """Run argv on a pseudo-terminal and show all it shows; next_keys(shown) gives the keys to type now, or None.

    What is to be typed is typed once a person would have read what is there. Returns (exit status, what was shown)."""
    print(paint("$ ", "1") + " ".join(shell_word(a) for a in argv), flush=True)
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(cwd)
        os.execvpe(argv[0], argv, env)
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    shown, keys, due, end = b"", None, 0, time.monotonic() + LIMIT
    while time.monotonic() < end:
        if select.select([fd], [], [], 0.05)[0]:
            try:
                chunk = os.read(fd, 65536)
            except OSError:
                break
            if not chunk:
                break
            shown += chunk
            sys.stdout.buffer.write(chunk if sys.stdout.isatty() else chunk.replace(b"\r", b""))
            sys.stdout.buffer.flush()
        if keys is None:
            keys, due = next_keys(shown), time.monotonic() + READING_TIME
        elif time.monotonic() >= due:
            os.write(fd, keys)
            keys = None
    else:
        os.kill(pid, 9)
    os.close(fd)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return status, shown.decode("utf-8", "replace")


def on_terminal(argv, cwd, env, answer):
    """Run argv on a pseudo-terminal and type `answer` at each question.

    Returns (exit status, what was shown, questions seen)."""
    asked = 0

    def next_keys(shown):
        nonlocal asked
        if shown.count(b"[y] once") == asked:
            return None
        asked = shown.count(b"[y] once")
        return answer

    status, shown = converse(argv, cwd, env, next_keys)
    return status, shown, asked


def follow(argv, cwd, env, steps):
    """Run argv on a pseudo-terminal. Each step: what to wait for, what to type then.

    Returns (exit status, what was shown)."""
    at, steps = 0, list(steps)

    def next_keys(shown):
        nonlocal at
        if not steps or steps[0][0] not in shown[at:]:
            return None
        at = len(shown)
        return steps.pop(0)[1]

    status, shown = converse(argv, cwd, env, next_keys)
    expect(not steps, f"{steps[:1]} was waited for")
    return status, shown


def shell_word(word):
    return word if re.fullmatch(r"[\w@%+=:,./-]+", word) else "'" + word.replace("'", "'\\''") + "'"


def expect(condition, what):
    if not condition:
        print(paint(f"demo: not as promised: {what}", "31"), file=sys.stderr)
        sys.exit(1)


def show_report(file):
    with open(file, encoding="utf-8") as f:
        report = json.load(f)
    for d in report["denials"]:
        print(f"  path     {d['path']}\n  access   {', '.join(d['access'])}\n  call     {d['call']}\n"
              f"  program  {d['exe']} ({d['argv0']})\n  verdict  {d['verdict']}\n"
              f"  answer   {d['answer']}, {d['lifetime']}, by {d['by']}")
    print(f"  runs     {report['runs']}")
    return report


def demo(warder, base):
    project, outside = os.path.join(base, "project"), os.path.join(base, "outside")
    os.makedirs(project)
    os.makedirs(outside)
    with open(os.path.join(outside, "notes.txt"), "w", encoding="utf-8") as f:
        f.write("these notes are outside of the project\n")
    env = dict(os.environ, HOME=base, XDG_CONFIG_HOME=os.path.join(base, "config"),
               XDG_STATE_HOME=os.path.join(base, "state"), TERM=terminal())
    env.pop("CI", None)  # here somebody does answer
    env["PATH"] = os.path.dirname(warder) + ":" + env["PATH"]

    say("An agent works in a project. Every tool it calls runs behind the wall.")
    status, shown = follow(["warder", "agent", "--provider", "script"], project, env, [
        (b"Enter: 3]", b"2\r"), (b"warder> ", b"write a hello program, and look around\r"), (b"[y] once", b"y"),
        (b"Done:", b"/quit\r")])
    expect("  hello from inside the wall" in shown and "  outside" in shown, "what the commands printed is shown")
    expect(status == 0, f"the agent ended with {status}")
    expect("ls asks to list" in shown and "list ~" in shown, "the home directory was asked about")
    expect("hello from inside the wall" in
           subprocess.run([os.path.join(project, "warder-demo", "hello")], capture_output=True,
                          text=True, check=False).stdout, "the program was compiled")

    say("Any command: the refused read is asked about while it waits, and goes on in place.")
    report = os.path.join(base, "report.json")
    status, shown, asked = on_terminal(
        ["warder", "run", "--report", report, "--", "sh", "-c",
         "echo x >> log; cat ../outside/notes.txt; echo y >> log"], project, env, b"y")
    expect(status == 0 and asked == 1, "the command went on after one question")
    expect("these notes are outside" in shown, "the file was read")
    with open(os.path.join(project, "log"), encoding="utf-8") as f:
        expect(f.read() == "x\ny\n", "it ran once")

    say("What the report says of it:")
    found = show_report(report)
    expect(found["runs"] == 1, "one run")
    expect([(d["path"], d["access"], d["verdict"]) for d in found["denials"]] ==
           [(os.path.join(outside, "notes.txt"), ["read"], "sandbox")], "the denial is named exactly")


def main():
    if len(sys.argv) != 2:
        print("usage: demo.py WARDER", file=sys.stderr)
        return 2
    base = os.path.realpath(tempfile.mkdtemp(prefix="warder-demo-"))
    try:
        demo(os.path.realpath(sys.argv[1]), base)
    finally:
        shutil.rmtree(base, ignore_errors=True)
    say("Next: warder run -- COMMAND, warder agent, warder run --help. The tests: ./dev test")
    return 0


if __name__ == "__main__":
    sys.exit(main())
