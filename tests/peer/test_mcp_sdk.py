"""The official MCP SDK (npm, @modelcontextprotocol/sdk) as the client of `warder mcp`."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest

WARDER = os.path.realpath(os.environ["WARDER"])
HERE = os.path.join(os.path.dirname(os.path.realpath(__file__)), "mcp_sdk")
TIMEOUT = 60
INSTALL_TIMEOUT = 150


def install(folder):
    """The SDK, from npm's registry; why not, where that can't be."""
    if not shutil.which("node") or not shutil.which("npm"):
        return "node and npm are not installed"
    shutil.copytree(HERE, folder, dirs_exist_ok=True)
    try:
        done = subprocess.run(
            ["npm", "install", "--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts", "--loglevel=error"],
            cwd=folder, env={**os.environ, "HOME": folder, "npm_config_cache": os.path.join(folder, "cache")},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=INSTALL_TIMEOUT, check=False)
    except subprocess.TimeoutExpired:
        return "npm's registry does not answer"
    return done.returncode and f"npm's registry can't be reached: {done.stderr.strip().splitlines()[-1:]}"


class Sdk(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.top = os.path.realpath(tempfile.mkdtemp(prefix="warder-mcp-sdk-"))
        cls.addClassCleanup(shutil.rmtree, cls.top, ignore_errors=True)
        why_not = install(os.path.join(cls.top, "sdk"))
        if why_not:
            raise unittest.SkipTest(why_not)
        for name in ("home", "project", "outside"):
            os.mkdir(os.path.join(cls.top, name))
        cls.notes = os.path.join(cls.top, "outside", "notes.txt")
        with open(cls.notes, "w", encoding="utf-8") as f:
            f.write("the notes outside\n")
        done = subprocess.run(
            ["node", os.path.join(cls.top, "sdk", "client.mjs"), WARDER, cls.notes],
            cwd=os.path.join(cls.top, "project"),
            env={"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": os.path.join(cls.top, "home")},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT, check=False)
        if done.returncode:
            raise AssertionError(f"the client failed ({done.returncode}):\n{done.stdout}\n{done.stderr}")
        cls.seen = json.loads(done.stdout)

    def test_it_connects_and_lists_the_tools(self):
        self.assertEqual(self.seen["server"]["name"], "warder")
        self.assertEqual(self.seen["tools"], ["read_file", "write_file", "edit_file", "list_dir", "run_shell"])

    def test_calls_are_answered(self):
        self.assertIs(self.seen["written"]["created"], True)
        self.assertEqual(self.seen["read"]["content"], "one\n")
        self.assertEqual(self.seen["shell"]["output"], "a\nb\n")
        self.assertEqual(self.seen["progress"], ["a", "b"])
        self.assertEqual(self.seen["unknown"], -32602)

    def test_a_refused_call_is_asked_about_and_goes_on(self):
        self.assertEqual(self.seen["granted"]["content"], "the notes outside\n")
        (question,) = self.seen["questions"]
        self.assertIn(self.notes, question)

    def test_without_elicitation_it_is_refused_with_the_command(self):
        (command,) = self.seen["refused"]["to_allow"]
        self.assertTrue(command.startswith("warder policy allow "), command)

    def test_a_cancelled_call_ends(self):
        self.assertIn("enough", self.seen["aborted"])
        self.assertEqual(self.seen["after"]["output"], "after\n")


if __name__ == "__main__":
    unittest.main(verbosity=2)
