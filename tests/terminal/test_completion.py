"""The shells complete warder's words: bash, zsh and fish themselves are asked."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(__file__))
from tmux_help import Terminal  # noqa: E402  (the helper lies beside this file)

WARDER = os.path.realpath(os.environ["WARDER"])


class Place:
    """A home with a named session, a conversation and a few files; warder in PATH."""

    def __init__(self, case):
        self.dir = tempfile.mkdtemp(prefix="warder-completion-")
        case.addCleanup(shutil.rmtree, self.dir)
        for name in ("bin", "home", "here", "here/directory", "tmp"):
            os.mkdir(os.path.join(self.dir, name))
        os.symlink(WARDER, os.path.join(self.dir, "bin", "warder"))
        open(os.path.join(self.dir, "here", "file name"), "w").close()
        self.env = {"PATH": os.path.join(self.dir, "bin") + ":/usr/sbin:/usr/bin:/sbin:/bin",
                    "HOME": os.path.join(self.dir, "home"), "LANG": "C.UTF-8",
                    "XDG_CONFIG_HOME": os.path.join(self.dir, "config"),
                    "XDG_STATE_HOME": os.path.join(self.dir, "state"), "TERM": "dumb",
                    "TMPDIR": os.path.join(self.dir, "tmp")}
        self.run(["warder", "run", "--session", "nightly", "--", "true"])
        self.run(["warder", "agent", "--provider", "script", "-p", "hello"])
        self.chat = os.listdir(os.path.join(self.dir, "state", "warder", "sessions"))[0].removesuffix(".jsonl")

    def run(self, argv, **more):
        done = subprocess.run(argv, cwd=os.path.join(self.dir, "here"), env=self.env, timeout=60,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, **more)
        if done.returncode:
            raise AssertionError(f"{argv}: {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done.stdout


CHAT = "the conversation's id"
# What is typed, and some of what has to be offered; a word that must not be.
CASES = [
    ("warder ", ["run", "agent", "policy", "doctor"], "tool-child"),
    ("warder pol", ["policy"], "run"),
    ("warder run --pre", ["--preset"], "--no-preset"),
    ("warder run --preset g", ["git", "gh", "go"], "python"),
    ("warder run --ask ", ["tty", "socket", "none"], "hold"),
    ("warder run --session n", ["nightly"], "git"),
    ("warder session ", ["list", "end"], "nightly"),
    ("warder run --answer", ["--answers", "--answer-timeout"], "--ask"),  # --help does not list it, --help all does
    ("warder record --lef", ["--leftovers"], "--label"),
    ("warder session end ", ["nightly"], "list"),
    ("warder policy ", ["show", "check", "allow", "forget"], "run"),
    ("warder policy allow re", ["read"], "write"),
    ("warder completion ", ["bash", "zsh", "fish"], "run"),
    ("warder agent --output ", ["text", "json", "stream-json"], "tty"),
    ("warder agent --resume ", [CHAT], "nightly"),
    ("warder run -r di", ["directory"], "file"),
    ("warder run -q -- tru", ["true"], "--quiet"),
    ("warder why di", ["directory"], "read"),
    ("warder why directory wri", ["write"], "read"),
]


class Words(unittest.TestCase):
    def setUp(self):
        self.place = Place(self)

    def check(self, typed, offered, wanted, unwanted):
        for word in wanted:
            self.assertIn(self.place.chat if word == CHAT else word, offered, typed)
        self.assertNotIn(unwanted, offered, typed)

    def test_bash(self):
        script = self.place.run(["warder", "completion", "bash"])
        for typed, wanted, unwanted in CASES:
            words = typed.split(" ")
            out = self.place.run(["bash", "--norc", "-c", script + f"""
                COMP_WORDS=({' '.join(w or "''" for w in words)}) COMP_CWORD={len(words) - 1}
                compopt() {{ :; }}
                _warder
                printf '%s\\n' "${{COMPREPLY[@]}}" """])
            self.check(typed, [w.rstrip("/") for w in out.splitlines()], wanted, unwanted)

    def test_fish(self):
        if not shutil.which("fish"):
            self.skipTest("fish is not installed")
        script = self.place.run(["warder", "completion", "fish"])
        for typed, wanted, unwanted in CASES:
            out = self.place.run(["fish", "--no-config", "-c", script + f"\ncomplete -C '{typed}'"])
            offered = [line.split("\t")[0].rstrip("/") for line in out.splitlines()]
            self.check(typed, offered, wanted, unwanted)

    def test_every_option_in_a_help_is_offered_and_taken(self):
        """What the help shows is what there is."""
        subcommands = [line.split("\t")[0] for line in
                       self.place.run(["warder", "complete", "1", "warder", ""]).splitlines()]
        self.assertGreater(len(subcommands), 10)
        for sub in subcommands:
            if sub.startswith("-"):
                continue
            text = self.place.run(["warder", sub, "--help"])
            self.assertIn("Usage: warder " + sub, text)
            self.assertLessEqual(max(map(len, text.splitlines())), 100, sub)
            every = self.place.run(["warder", sub, "--help", "all"])
            shown = set(re.findall(r"(?m)^ +(?:-\w, )?(--[a-z][a-z-]+)", text + every))
            offered = {line.split("\t")[0] for line in
                       self.place.run(["warder", "complete", "2", "warder", sub, "--"]).splitlines()}
            self.assertEqual(shown - offered, set(), sub)


class Zsh(unittest.TestCase):
    @unittest.skipUnless(shutil.which("zsh"), "zsh is not installed")
    def test_zsh(self):
        place = Place(self)
        with Terminal(width=100, height=50, cwd=os.path.join(place.dir, "here")) as t:
            t.env.update({k: v for k, v in place.env.items() if k != "TERM"})
            exports = " ".join(f"{k}={v}" for k, v in place.env.items() if k != "TERM")
            t.line(f"env {exports} PS1='zsh> ' ZDOTDIR=/nonexistent zsh -f")
            t.wait_for("zsh>")
            t.line("autoload -Uz compinit && compinit -D -u && source <(warder completion zsh) && clear; print read''y")
            t.wait_for("ready")
            for n, (typed, wanted, unwanted) in enumerate(CASES):
                if typed.endswith("tru"):
                    continue  # zsh's own completion of commands lists what it likes
                t.keys("C-u")
                t.line(f"clear; print tick''{n}")
                t.wait_for(f"tick{n}")
                t.tmux("send-keys", "-l", typed)
                t.keys("Tab")
                for word in wanted:
                    shown = t.wait_for(place.chat if word == CHAT else word)
                self.assertNotIn(f" {unwanted} ", shown.replace(typed, "", 1) + " ", typed)
            t.keys("C-u")
            t.line("exit")


if __name__ == "__main__":
    unittest.main()
