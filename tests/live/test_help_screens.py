#!/usr/bin/env python3
"""
Every --help fits a terminal of 80 columns and 24 rows and shows two examples, that of each word of a subcommand,
too; --help all lists every option.
"""

import re
import subprocess
import unittest

from run_help import TIMEOUT, WARDER, main


def ask(*words):
    return subprocess.run([WARDER, *words], capture_output=True, text=True, timeout=TIMEOUT,
                          env={"PATH": "/usr/bin:/bin"})  # no HOME: a help needs none


def help_of(*words):
    done = ask(*words, "--help")
    assert done.returncode == 0 and not done.stderr, (words, done.stderr)
    return done.stdout


def subcommands():
    return sorted(set(re.findall(r"^  warder ([a-z]+) ", help_of(), re.M)))


def words_of(name):
    """policy show|check ...: the words of its synopsis."""
    synopsis = help_of(name).split("\n\n")[0]
    found = re.findall(rf"^(?:Usage:|      ) warder {name} ([a-z]+(?:\|[a-z]+)*)(?= |$)", synopsis, re.M)
    return [word for group in found for word in group.split("|")]


class Screens(unittest.TestCase):
    def test_each_fits(self):
        names = subcommands()
        self.assertGreater(len(names), 12)
        nested = [(name, word) for name in names for word in words_of(name)]
        self.assertIn(("session", "end"), nested)
        self.assertIn(("policy", "forbid"), nested)
        self.assertIn(("completion", "zsh"), nested)
        self.assertGreater(len(nested), 17)
        for words in ((), *((name,) for name in names), *nested):
            with self.subTest(words):
                text = help_of(*words)
                self.assertEqual([], [line for line in text.splitlines() if len(line) > 80])
                self.assertLessEqual(len(text.splitlines()), 24)
                word = words[0 if "completion" in words else -1] if words else ""
                examples = re.findall(rf"(?m)^  (?=\S).*\bwarder\b.*\b{word}\b", text)
                self.assertGreaterEqual(len(examples), 2)
                self.assertEqual(text, help_of(*words[:1], *words[1:]))

    def test_each_word_has_its_own(self):
        """Wherever --help stands, and by `warder help`."""
        for name in subcommands():
            for word in words_of(name):
                with self.subTest(f"{name} {word}"):
                    text = help_of(name, word)
                    self.assertRegex(text, rf"\AUsage: warder {name} (\w+\|)*{word}\b")
                    for other in ((name, "--help", word), (name, word, "-h"), ("help", name, word)):
                        self.assertEqual(text, ask(*other).stdout, other)
            self.assertEqual(help_of(name), ask("help", name).stdout)
            self.assertEqual(help_of(name), ask(name, "-h").stdout, name)
        self.assertEqual(2, ask("help", "nosuch").returncode)
        self.assertIn("unknown subcommand 'nosuch'", ask("help", "nosuch").stderr)
        self.assertIn("unknown option '--nosuch'", ask("--nosuch").stderr)

    def test_a_slip_of_the_pen_is_told_what_was_meant(self):
        for words, told in (
            (("rnu", "true"), "unknown subcommand 'rnu'; did you mean 'run'? see warder --help"),
            (("help", "polciy"), "unknown subcommand 'polciy'; did you mean 'policy'? see warder --help"),
            (("run", "--timeot=5", "true"), "unknown option '--timeot=5'; did you mean '--timeout'? see warder run --help"),
            (("record", "--labell", "x"), "unknown option '--labell'; did you mean '--label'? see warder record --help"),
            (("agent", "--proivder", "x"), "unknown option '--proivder'; did you mean '--provider'? see warder agent --help"),
            (("mcp", "--presett", "x"), "unknown option '--presett'; did you mean '--preset'? see warder mcp --help"),
            (("policy", "alow", "r", "x"), "merge or path, not 'alow'; did you mean 'allow'? see warder policy --help"),
            (("policy", "presets"), "merge or path, not 'presets'; see warder policy --help"),
            (("policy", "show", "--efective"), "unknown option '--efective'; did you mean '--effective'? see warder policy --help"),
            (("replay", "--polcy=x", "t"), "unknown option '--polcy=x'; did you mean '--policy'? see warder replay --help"),
            (("run", "-Z", "true"), "unknown option '-Z'; see warder run --help"),
        ):
            done = ask(*words)
            self.assertEqual(done.returncode, 125 if words[0] in ("run", "record") else 2)
            self.assertRegex(done.stderr, rf"\Awarder(: | policy: (expected [^\n]* )?){re.escape(told)}\n\Z")
        for option, told in (("--preset", "not 'nodee'; did you mean 'node'?"), ("--no-preset", "not 'projetc'; did you mean 'project'?")):
            done = ask("run", option, told.split("'")[1], "true")
            self.assertEqual(done.returncode, 125)
            self.assertRegex(done.stderr, f"^warder: {option}: expected [^\n]*{re.escape(told)}\n$")

    def test_all(self):
        for name in subcommands():
            with self.subTest(name):
                few, every = help_of(name), ask(name, "--help", "all")
                self.assertEqual((0, ""), (every.returncode, every.stderr))
                self.assertEqual([], [line for line in every.stdout.splitlines() if len(line) > 80])
                options = [set(re.findall(r"--[a-z][a-z-]+", text)) for text in (few, every.stdout)]
                self.assertEqual(set(), options[0] - options[1] - {"--help"})
                if name in ("run", "record", "agent"):
                    self.assertIn("--help [all]", every.stdout)
                    self.assertGreater(len(every.stdout.splitlines()), 30)
                else:
                    self.assertEqual(few, every.stdout)


if __name__ == "__main__":
    main()
