"""
`warder agent` where no account is set up: a script that calls it gets an error and what to do, never the
demonstration's words for an answer.
"""

import os
import subprocess
import unittest

from agent_help import PATIENCE, AgentCase


class NoAccount(AgentCase):
    def agent(self, *arguments, text=None, **environment):
        return subprocess.run(
            **self.command(arguments),
            env={"HOME": self.home, "PATH": "/nonexistent", "LANG": "C.UTF-8", **environment},
            input=text if text is not None else "",
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            start_new_session=True,
        )

    def assert_no_model(self, done):
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for way in ("warder login", "OPENAI_API_KEY", "--endpoint", "--provider script"):
            self.assertIn(way, done.stderr)
        self.assertEqual(os.listdir(self.project), [])

    def test_one_turn_is_no_demonstration(self):
        self.assert_no_model(self.agent("-p", "write a hello program"))
        self.assert_no_model(self.agent("-p", "-", text="write a hello program\n"))
        self.assert_no_model(self.agent("--output", "json", "-p", "go"))

    def test_lines_from_a_pipe_are_no_demonstration(self):
        self.assert_no_model(self.agent(text="write a hello program\n"))

    def test_a_classic_token_is_no_account_and_is_named(self):
        done = self.agent("-p", "go", GH_TOKEN="ghp_" + "a" * 36)
        self.assert_no_model(done)
        self.assertIn("classic", done.stderr)

    def test_the_demonstration_that_was_asked_for_plays(self):
        done = self.agent("--provider", "script", "-p", "go", PATH="/usr/bin:/bin")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("built-in demonstration", done.stderr)
        self.assertNotIn("no account", done.stderr)
        self.assertTrue(os.path.exists(os.path.join(self.project, "warder-demo", "hello")))


if __name__ == "__main__":
    unittest.main()
