"""
What the program says to people reads like one hand wrote it: what happened, to what, what to do; in one
line, and never an errno's name alone. `test_words.py --list` prints every message and where it is.
"""

import os
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(os.environ.get("SOURCE_DIR", pathlib.Path(__file__).parents[2]))
# What takes a message for people.
SAYS = re.compile(r"\b(?:fprintf|policycli_usage|policycli_trouble|cli_complain|run_say|run_refuse|run_fail|fail|fault|trouble"
                  r"|usage|wrong|provider_fail|doctor_find|doctor_fix|complain|say|event_error|add_text|refuse|put_line"
                  r"|unsure)\s*\(")
LITERAL = re.compile(r'"(?:[^"\\\n]|\\.)*"')
TEXT = re.compile(r'(?:"(?:[^"\\\n]|\\.)*"\s*(?:PRI\w+\s*)?)+')
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)


def arguments(source, start):
    """What stands between the bracket before start and its end."""
    depth, at = 1, start
    while depth and at < len(source):
        literal = LITERAL.match(source, at)
        if literal:
            at = literal.end()
            continue
        depth += (source[at] == "(") - (source[at] == ")")
        at += 1
    return source[start:at - 1]


def add(found, group, file):
    text = "".join(s[1:-1] for s in LITERAL.findall(group.group(0)))
    text = text.removesuffix("\\n")
    if len(text.split()) > 2:
        found.setdefault(text, f"{file.parent.name}/{file.name}")


def messages(rooms=("supervisor", "agent"), root=ROOT):
    """(text, file), each text once; a single word is no message."""
    found = {}
    for room in rooms:
        for file in sorted((root / room).glob("*.c")):
            source = COMMENT.sub("", file.read_text())
            for call in SAYS.finditer(source):
                for group in TEXT.finditer(arguments(source, call.end())):
                    add(found, group, file)
            for group in TEXT.finditer(source):  # however it gets out
                if group.group(0).startswith('"warder: '):
                    add(found, group, file)
    return found


RULES = [
    ("an errno's name says nothing to a person", re.compile(r"(?<!\$)\bE[A-Z]{3,}\b")),
    ("one line a message", re.compile(r"\\n.")),
    ("can't, as everywhere else", re.compile(r"\b(?:cannot|can not|could not be able|unable to)\b")),
    ("say what is wrong, not that it is", re.compile(r"\b(?:invalid|illegal|bad argument|error occurred)\b", re.I)),
    ("nobody is shouted at", re.compile(r"!")),
    ("no please, no sorry", re.compile(r"\b(?:sorry|oops)\b", re.I)),
    ("two spaces", re.compile(r"[^\s|]  +[^\s(]")),
]


def faults(found):
    for text, file in found.items():
        for why, pattern in RULES:
            if pattern.search(text):
                yield f"{file}: {text!r}: {why}"
        if text.endswith(".") and "..." not in text and not file.endswith("slash.c"):
            yield f"{file}: {text!r}: no full stop at a line's end"


class Words(unittest.TestCase):
    maxDiff = None

    def test_one_hand(self):
        found = messages()
        self.assertGreater(len(found), 200)
        self.assertEqual(list(faults(found)), [])

    def test_a_fault_is_seen(self):
        for text in ("EACCES on it", "a\\nb is two", "it cannot be done", "an invalid argument", "no way, really!",
                     "there are  two", "it is over."):
            self.assertTrue(list(faults({text: "x.c"})), text)
        self.assertEqual(list(faults({"%s: no such file: name another": "x.c"})), [])


if __name__ == "__main__":
    if sys.argv[1:] == ["--list"]:
        for message, where in messages().items():
            print(f"{where}: {message}")
    else:
        unittest.main()
