#!/usr/bin/env python3
"""A session's memory, under valgrind: nothing wrong, nothing lost. Without tools: valgrind knows no Landlock.

WARDER names the binary, MOCK the server.
"""

import subprocess
import unittest

import agent_help
from agent_help import AgentCase, message

VALGRIND = ["valgrind", "-q", "--leak-check=full", "--errors-for-leak-kinds=definite,indirect",
            "--error-exitcode=99"]
PATIENCE = 200
SAID = {"choices": [{"delta": {"content": "half of an "}}]}


def is_sanitized():
    with open(agent_help.WARDER, "rb") as f:
        return b"__asan_init" in f.read()


@unittest.skipIf(is_sanitized(), "the sanitizer looks after it")
class Valgrind(AgentCase):
    def run_words(self, url, *words, text=None):
        done = subprocess.run([*VALGRIND, self.warder, *words], cwd=self.project, capture_output=True, text=True,
                              input=text, stdin=None if text else subprocess.DEVNULL, timeout=PATIENCE,
                              start_new_session=True,
                              env={"HOME": self.home, "TMPDIR": self.tmp,
                                   "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8",
                                   "WARDER_GITHUB_WEB": url, "WARDER_GITHUB_API": url})
        self.assertNotEqual(done.returncode, 99, done.stderr)
        self.assertNotIn("Invalid", done.stderr)
        return done.returncode, done.stdout

    def test_login_turns_and_failures(self):
        url = self.serve([
            message("by chat"), {**message("by responses"), "for": "responses", "reasoning": "SEALED"},
            {**message("again"), "for": "responses"}, {"status": 400, "body": '{"error":{"code":"x"}}'},
            {"sse": [SAID, "no JSON"]}, {"sse": [SAID], "drop_after": 30}, {"status": 401, "body": "old"},
            message("the last")])
        status, out = self.run_words(url, "login")
        self.assertEqual(status, 0, out)
        status, out = self.run_words(url, "agent", text=(
            "one\n/model responses-only\ntwo\nthree\n/model mock-large\nfour\nfive\nsix\nseven\n"
            "/models\n/models enable needs-terms\n/usage\n"))
        for part in ("by chat", "by responses", "again", "no JSON object", "the last", "120 of 300 left"):
            self.assertIn(part, out)
        self.assertEqual(self.run_words(url, "logout")[0], 0)


if __name__ == "__main__":
    agent_help.main()
