#!/usr/bin/env python3
"""`warder login` and `warder logout` against a GitHub of the loopback (tests/support/mock_copilot.c).

WARDER names the binary, MOCK the server.
"""

import json
import os
import signal
import stat
import subprocess
import unittest

import agent_help
from agent_help import AgentCase, both_users, message

TOKEN = "ghu_test"  # what the mock gives
PENDING = {"for": "login", "body": '{"error":"authorization_pending"}'}


def refusal(error, **more):
    return {"for": "login", "body": json.dumps({"error": error, **more})}


class LoginCase(AgentCase):
    def setUp(self):
        super().setUp()
        self.file = os.path.join(self.home, ".config/warder/copilot.json")

    def environment(self, url, **more):
        return {
            "HOME": self.home,
            "PATH": "/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "WARDER_GITHUB_WEB": url,
            "WARDER_GITHUB_API": url,
            **more,
        }

    def start(self, *words, env):
        drop = {} if self.uid is None else {"user": self.uid, "group": self.uid, "extra_groups": []}
        return subprocess.Popen([self.warder, *words], env=env, cwd=self.project, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                start_new_session=True, **drop)

    def run_words(self, *words, env):
        p = self.start(*words, env=env)
        try:
            out, err = p.communicate(timeout=agent_help.PATIENCE)
        except subprocess.TimeoutExpired:
            p.kill()
            p.communicate()
            raise
        return p.returncode, out, err

    def login(self, lines, *words, **env):
        return self.run_words("login", *words, env=self.environment(self.serve(lines), **env))

    def asked(self, path):
        with open(self.log) as f:
            return [r for r in map(json.loads, f) if r["path"] == path]


@both_users
class Login(LoginCase):
    def test_login_agent_logout(self):
        url = self.serve([PENDING, message("hello from the model")])
        env = self.environment(url)
        status, out, err = self.run_words("login", env=env)
        self.assertEqual((status, err), (0, ""))
        self.assertIn("MOCK-1234", out)
        self.assertIn(f"{url}/login/device", out)
        self.assertIn("Copilot answers", out)
        for path, mode in ((self.file, 0o600), (os.path.dirname(self.file), 0o700)):
            self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), mode)
        self.assertEqual(os.listdir(os.path.dirname(self.file)), ["copilot.json"])
        with open(self.file) as f:
            self.assertEqual(json.load(f)["token"], TOKEN)
        # Which GitHub it is for is kept with it, and nothing else has to be said.
        for name in ("WARDER_GITHUB_WEB", "WARDER_GITHUB_API"):
            del env[name]
        status, out, err = self.run_words("agent", "-p", "hi", env=env)
        self.assertEqual((status, out.strip()), (0, "hello from the model"), err)
        # Another GitHub does not get it.
        status, out, err = self.run_words("agent", "--provider", "copilot", "-p", "hi",
                                          env=dict(env, GH_HOST="octo.ghe.com"))
        self.assertEqual(status, 2)
        self.assertIn("there is no GitHub token: run `warder login`", err)
        # No command reads it, whatever it may read.
        status, out, err = self.run_words("run", "-r", "/", "--on-denial", "report", "--", "cat", self.file,
                                          env=env)
        self.assertEqual((status, out), (1, ""))
        status, out, err = self.run_words("logout", env=env)
        self.assertEqual((status, err), (0, ""))
        self.assertFalse(os.path.exists(self.file))
        status, out, err = self.run_words("logout", env=env)
        self.assertEqual((status, err), (1, ""))
        self.assertIn("Not signed in", out)

    def test_json(self):
        status, out, err = self.login([], "--json")
        self.assertEqual((status, err), (0, ""))
        code, done = map(json.loads, out.splitlines())
        self.assertEqual((code["event"], code["user_code"], code["expires_in"]), ("code", "MOCK-1234", 900))
        self.assertEqual(done, {"event": "done", "host": done["host"], "file": self.file, "copilot": True,
                                "error": None})
        status, out, _ = self.run_words("logout", "--json", env=self.environment("http://127.0.0.1:1"))
        self.assertEqual((status, json.loads(out)["forgotten"]), (0, True))
        status, out, _ = self.login([refusal("access_denied")], "--json")
        self.assertEqual((status, json.loads(out.splitlines()[-1])["event"]), (1, "error"))

    def test_ctrl_c_keeps_nothing(self):
        p = self.start("login", env=self.environment(self.serve([PENDING] * 50)))
        self.addCleanup(p.stdout.close)
        self.addCleanup(p.stderr.close)
        self.addCleanup(p.kill)
        for line in p.stdout:
            if line.startswith("Waiting"):
                break
        p.send_signal(signal.SIGINT)
        self.assertEqual(p.wait(agent_help.PATIENCE), -signal.SIGINT)
        self.assertEqual(p.stderr.read(), "")
        self.assertFalse(os.path.exists(self.file))


class Faults(LoginCase):
    """Each in one sentence that says what to do, with its status; and nothing is kept."""

    def fails(self, lines, status, *says, words=(), **env):
        got, out, err = self.login(lines, *words, **env)
        self.assertEqual(got, status, err)
        self.assertEqual(err.count("\n"), 1, err)
        for part in says:
            self.assertIn(part, err)
        self.assertFalse(os.path.exists(self.file))
        return out

    def test_too_often_then_refused_by_the_user(self):
        self.fails([refusal("slow_down", interval=2), refusal("access_denied")], 1, "refused on GitHub's page")
        self.assertEqual(len(self.asked("/login/oauth/access_token")), 2)

    def test_too_late(self):
        self.fails([refusal("expired_token")], 1, "code has expired: run `warder login` again")
        self.fails([{"for": "device", "lifetime": 1}], 1, "code has expired")

    def test_an_unknown_client(self):
        self.fails([refusal("incorrect_client_credentials", error_description="The client_id is not valid")],
                   125, "client Iv9.mine", "--client-id", "The client_id is not valid",
                   words=("--client-id", "Iv9.mine"))
        self.assertEqual(json.loads(self.asked("/login/device/code")[0]["body"]),
                         {"client_id": "Iv9.mine", "scope": "read:user"})
        self.fails([{"for": "device", "body": '{"error":"device_flow_disabled"}'}], 125, "device_flow_disabled")

    def test_no_login_page(self):
        self.fails([{"for": "device", "status": 404, "body": "", "headers": {"x-github-request-id": "A:1"}}],
                   125, "--host", "request id A:1")
        self.fails([{"for": "device", "body": "<html>"}], 125, "no JSON")
        self.fails([{"for": "device", "body": "{}"}], 125, "no code to sign in with")
        self.fails([{"for": "device", "body": json.dumps(
            {"device_code": "d", "user_code": "\u001b[2J", "verification_uri": "https://github.com"})}],
            125, "no code to sign in with")

    def test_nobody_there(self):
        self.fails([], 125, "cannot connect to 127.0.0.1:1", WARDER_GITHUB_WEB="http://127.0.0.1:1")
        self.fails([], 125, "give an https URL", WARDER_GITHUB_WEB="http://example.invalid")

    def test_usage(self):
        for words in (("--host", "a b"), ("--host",), ("--what",), ("more",)):
            got, out, err = self.run_words("login", *words, env=self.environment("http://127.0.0.1:1"))
            self.assertEqual((got, out, err.count("\n")), (2, "", 1), words)
        for command in ("login", "logout"):
            got, out, err = self.run_words(command, "--help", env=self.environment("http://127.0.0.1:1"))
            self.assertEqual((got, err), (0, ""))
            self.assertLess(out.count("\n"), 24)

    def test_a_network_that_fails_meanwhile_is_waited_for(self):
        status, out, err = self.login([{"for": "login", "drop_after": 0}, {"for": "login", "status": 503},
                                       PENDING])
        self.assertEqual(status, 0, err)
        self.assertEqual(err.count("still waiting"), 1, err)
        self.assertTrue(os.path.exists(self.file))

    def test_an_account_without_copilot_is_told_and_the_token_kept(self):
        status, out, err = self.login([{"for": "token", "status": 403, "body": '{"message":"no"}'}])
        self.assertEqual(status, 1, err)
        self.assertIn("Copilot can't be used with it yet", err)
        self.assertIn("subscription", err)
        self.assertTrue(os.path.exists(self.file))

    def test_what_goes_first_is_named(self):
        status, out, err = self.login([], GH_TOKEN="ghu_other")
        self.assertEqual(status, 0)
        self.assertIn("GH_TOKEN is set and goes before this login", err)
        status, out, err = self.run_words("logout", env=self.environment("http://127.0.0.1:1",
                                                                         GH_TOKEN="ghu_other"))
        self.assertEqual(status, 0)
        self.assertIn("GH_TOKEN still gives a token", err)

    def test_the_token_is_nowhere_but_in_its_file(self):
        status, out, err = self.login([PENDING, {"for": "login", "status": 500, "body": TOKEN}])
        self.assertEqual(status, 0, err)
        self.assertNotIn("mock-device-code-secret", out + err)
        self.assertNotIn(TOKEN, out)


if __name__ == "__main__":
    agent_help.main()
