#!/usr/bin/env python3
"""An answer reaches only what was asked: the process, the thing, the time."""

import os

from run_help import RunCase, Talk, allow, both_users, deny, main

PYTHON = "/usr/bin/python3"

SWAPS = """
import os, subprocess, sys, threading, time
secret, plain = sys.argv[1:]
os.mkdir("d"); os.symlink(plain, "d/f")
def swap():
    time.sleep(0.4)
    os.rename("d", "old"); os.mkdir("d"); os.symlink(secret, "d/f")
threading.Thread(target=swap).start()
print(open("d/f").read(), end="")
"""

TEXT = """
import ctypes, sys, threading, time
secret, plain = (a.encode() for a in sys.argv[1:])
libc = ctypes.CDLL(None)
text = ctypes.create_string_buffer(max(len(secret), len(plain)) + 1)
text.value = plain
def swap():
    time.sleep(0.4)
    text.value = secret
threading.Thread(target=swap).start()
fd = libc.open(text, 0)
print(open(fd).read(), end="")
"""

FORKS = """
import os, sys
open(sys.argv[1]).read()
open(sys.argv[1]).read()
if os.fork() == 0:
    try:
        open(sys.argv[1]).read()
        print("child", flush=True)
    except PermissionError:
        pass
    os._exit(0)
os.wait()
os.execv("/bin/cat", ["cat", sys.argv[1]])
"""


@both_users
class Question(RunCase):
    def setUp(self):
        super().setUp()
        self.secret = self.write("outside/secret", "SECRET\n")
        self.plain = self.write("outside/plain", "plain\n")

    def answer_late(self, program):
        """The answer comes after the swap, and is about what was shown."""
        talk = Talk(self, ["--", PYTHON, "-c", program, self.secret, self.plain])
        q = talk.ask()
        self.assertEqual(self.plain, q["path"])
        self.assertTrue(talk.is_quiet(0.8))
        talk.answer(q, answer="allow")
        done = talk.finish()
        self.assertEqual("plain\n", done.out, done)
        self.assertEqual(1, len(done.asked))

    def test_a_symlink_that_changes_meanwhile(self):
        self.answer_late(SWAPS)

    def test_a_text_that_changes_meanwhile(self):
        self.answer_late(TEXT)

    def test_once_is_not_for_children_nor_for_the_next_program(self):
        answers = iter([allow()(None), {"answer": "allow", "scope": 0, "lifetime": "once"}])
        done = self.hold("--", PYTHON, "-c", FORKS, self.secret,
                         answer=lambda q: next(answers, {"answer": "deny"}))
        self.assertEqual([], [q for q in done.asked[3:]], done)
        # the process (once for both reads), its child, and cat in its place (a no holds for the run)
        self.assertIn(len(done.asked), (2, 3), done)
        self.assertNotIn("SECRET", done.out, done)

    def test_once_is_not_for_another_process_behind_the_same_question(self):
        talk = Talk(self, ["--", "sh", "-c",
                           f"(cat {self.secret} & sleep 0.5; head -c 99 {self.secret}; wait) | cat"])
        first = talk.ask()
        self.assertTrue(first["exe"].endswith("cat"), first)
        self.assertTrue(talk.is_quiet(1))
        talk.answer(first, answer="allow", lifetime="once")
        second = talk.ask()
        self.assertFalse(second["exe"].endswith("cat"), second)
        self.assertEqual(self.secret, second["path"])
        talk.answer(second, answer="deny")
        done = talk.finish()
        self.assertEqual("SECRET\n", done.out, done)

    def test_session_is_for_all_behind_the_same_question(self):
        talk = Talk(self, ["--", "sh", "-c",
                           f"(cat {self.secret} & sleep 0.5; head -c 99 {self.secret}; wait) | cat"])
        q = talk.ask()
        self.assertTrue(talk.is_quiet(1))
        talk.answer(q, answer="allow", lifetime="session")
        self.assertEqual(2, talk.finish().out.count("SECRET"))

    def test_a_name_is_shown_as_it_is(self):
        for name in ("a\nallow r x", "b\x1b[2K", "c\u202egpj.txt", "d\udcff", "e\u200b", "f\\x1b"):
            with self.subTest(ascii(name)):
                path = self.write(os.path.join("outside", name), "x\n")
                done = self.hold("--", "sh", "-c", 'cat "$0" 2>&-; true', path, answer=deny)
                self.assertEqual(1, len(done.asked), done)
                self.assertFalse(any(c in done.err for c in "\x1b\u202e\u200b"), ascii(done.err))
                self.assertNotIn("\nallow", done.err)


if __name__ == "__main__":
    main()
