#!/usr/bin/env python3
"""A whole session and an MCP server under valgrind: no wrong access, nothing lost.

valgrind knows no Landlock, so that no tool can run here: the sanitizers watch those (./dev sanitize).
"""

import os
import shutil
import subprocess
import unittest

from test_agent_repl import Agent, Place, READ_NOTES, assistant

# What is given out for good by libraries (libedit's terminal tables) is not lost.
VALGRIND = ["valgrind", "--quiet", "--leak-check=full", "--show-leak-kinds=definite",
            "--errors-for-leak-kinds=definite", "--error-exitcode=99"]
TEXT = """# Title

A *paragraph* with `code`, [a link](http://x.org) and 漢字, long enough to be wrapped at whatever width there is.

- one
- two

  ```c
  int x;
  ```

| a | b |
|---|---|
| 1 | 2 |

> quoted
"""
COMMANDS = ("/help", "/model x", "/models", "/detect hold", "/policy", "/grants", "/denials", "/why . w", "/why",
            "/sessions", "/details", "/trust write", "/usage", "/compact", "/nonsense", "/resume", "/resume none",
            "/clear")


def is_sanitized():
    with open(os.environ["WARDER"], "rb") as f:
        return b"__asan_init" in f.read()


@unittest.skipUnless(shutil.which("valgrind"), "not installed: valgrind")
class Valgrind(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        if is_sanitized():
            self.skipTest("the sanitizers are in it already")
        self.place = Place()
        self.addCleanup(self.place.remove)
        self.log = os.path.join(self.place.top, "valgrind.log")

    def command(self, *arguments):
        return [*VALGRIND, f"--log-file={self.log}", self.place.warder, *arguments]

    def errors(self):
        """Its words, but for those about calls it does not know."""
        with open(self.log, encoding="utf-8") as f:
            lines = [line for line in f if line.startswith("==")]
        return "".join(lines)

    def test_a_session_in_a_terminal(self):
        command = self.command("agent", *self.place.script(
            assistant(TEXT), assistant("Now.", READ_NOTES), assistant("In short."), assistant("On.")))

        class Checked(Agent):
            """The agent of the other tests, with valgrind before it."""
            def exec(self, place, _, environment):
                os.execvpe(command[0], command, environment)

        agent = Checked(self.place)
        self.addCleanup(agent.close)
        agent.trust("2")
        agent.expect("warder> ")
        for words in ("go", "and\\\rgo on", "more", *COMMANDS, "last"):
            agent.keys(words + "\r")
            agent.expect("warder> ")
        agent.keys("half a li\x03")
        agent.expect("warder> ")
        agent.keys("/quit\r")
        self.assertEqual((agent.wait(), self.errors()), (0, ""), self.errors())

    def test_an_mcp_server(self):
        lines = ['{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",'
                 '"capabilities":{"elicitation":{}}}}',
                 '{"jsonrpc":"2.0","id":2,"method":"tools/list"}', "nonsense", '{"jsonrpc":"2.0","id":3}',
                 '{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"list_dir","arguments":{"path":"."},'
                 '"_meta":{"progressToken":1}}}',
                 '{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"list_dir","arguments":{}}}',
                 '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}', "[{}, 3]"]
        done = subprocess.run(self.command("mcp"), input="\n".join(lines), cwd=self.place.project,
                              env=self.place.environment, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual((done.returncode, self.errors()), (0, ""), done.stderr)
        self.assertIn('"id":1', done.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
