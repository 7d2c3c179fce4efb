#!/usr/bin/env python3
"""No credential is anywhere but where it has to be: a whole session is searched for its bytes.

Sign in, ask, let the model's tools look for it, let the server echo it, fail; then every file, every word on
either output and every request's body is read. WARDER names the binary, MOCK the server.
"""

import json
import os
import subprocess

import agent_help
from agent_help import AgentCase, both_users, message, shell

GITHUB = "ghu_SecretOfTheLogin0123456789abcdefghij"
READY = "tid=0;SecretReadyBearer0123456789"
KEY = "sk-SecretOpenAiKey0123456789abcdef"
MINTED = "tid=mock2;exp=1;sku=test"  # the agent's bearer; the login tried the one before
DEVICE = "mock-device-code-secret"

# What a model that is after them would try.
HUNT = ("env; for p in self $PPID $(cut -d' ' -f4 /proc/$PPID/stat); do "
        "tr '\\0' '\\n' < /proc/$p/environ; tr '\\0' '\\n' < /proc/$p/cmdline; ls -l /proc/$p/fd; done; "
        "cat \"$HOME/.config/warder/copilot.json\"; ls -la \"$HOME/.config/warder\"; grep -rs Secret \"$HOME\" .")


@both_users
class Secrets(AgentCase):
    def start_server(self, lines, token):
        scenario = os.path.join(self.top, "scenario.jsonl")
        with open(scenario, "w") as f:
            f.writelines(json.dumps(line) + "\n" for line in lines)
        server = subprocess.Popen([agent_help.MOCK, "--scenario", scenario, "--log", self.log, "--token", token,
                                   "--bearer", READY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

        def stop():
            server.stdin.close()
            server.kill()
            server.wait()
            server.stdout.close()

        self.addCleanup(stop)
        port = server.stdout.readline().split()[1]
        os.unlink(scenario)  # it may hold what is searched for
        return f"http://127.0.0.1:{port}"

    def run_words(self, *words, text=None, **env):
        command = self.command([])
        command["args"] = [self.warder, *words]
        done = subprocess.run(**command, env={"HOME": self.home, "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", **env},
                              input=text, stdin=None if text else subprocess.DEVNULL, capture_output=True,
                              timeout=agent_help.PATIENCE, start_new_session=True)
        return done.returncode, done.stdout + done.stderr

    def bodies(self):
        with open(self.log) as f:
            return [(r["path"], r["body"].encode()) for r in map(json.loads, f)]

    def search(self, shown, secrets, but=()):
        """Where any of the secrets is: files below our directory, what was shown, what was sent as a body."""
        places = [("what was shown", shown)]
        places += [(path, body) for path, body in self.bodies() if path not in but]
        for folder, _, names in os.walk(self.top):
            for name in names:
                path = os.path.join(folder, name)
                if path == self.log or path == os.path.join(self.home, ".config/warder/copilot.json"):
                    continue
                with open(path, "rb") as f:
                    places.append((path, f.read()))
        return [(where, secret) for where, text in places for secret in secrets if secret.encode() in text]

    def test_a_session_of_copilot(self):
        url = self.start_server([
            message("I look", shell(HUNT), ("read_file", {"path": os.path.join(self.home, ".config/warder/copilot.json")})),
            message("nothing there"),
            {"status": 400, "type": "text/plain", "headers": {"x-request-id": f"id-{MINTED}"},
             "body": f"you sent Bearer {MINTED} for {GITHUB}"},
            {"sse": [f"no JSON but {MINTED}"]},
            {"sse": [{"error": {"message": f"what is {MINTED}?"}}]},
            {"status": 401, "body": f"bad bearer {MINTED}"},  # the renewed one is refused for the old
            {"status": 401, "body": f"still {MINTED}"},
            {"for": "token"},
            {"for": "token"},
            {"for": "token"},
            {"for": "token", "status": 403, "body": json.dumps({"message": f"no Copilot for {GITHUB}"})},
        ], GITHUB)
        github = {"WARDER_GITHUB_WEB": url, "WARDER_GITHUB_API": url}
        status, shown = self.run_words("login", **github)
        self.assertEqual(status, 0, shown)
        turns = "look for secrets\nfail\nfail again\nand again\nonce more\n/usage\n/denials\n/sessions\n/models\n"
        status, more = self.run_words("agent", "--model", "gpt-test", text=turns.encode(), **github)
        shown += more
        status, more = self.run_words("doctor", "--json", **github)
        shown += more
        self.assertIn(b"nothing there", shown)
        self.assertIn(b"[redacted]", shown)
        told = [body for path, body in self.bodies() if path == "/chat/completions"]
        self.assertIn(b"PATH=", told[1])  # the hunt did take place
        self.assertEqual(self.search(shown, [GITHUB, MINTED, "tid=mock3;exp=1;sku=test", DEVICE],
                                     but=("/login/oauth/access_token",)), [])
        status, more = self.run_words("logout", **github)
        self.assertEqual(status, 0)
        self.assertEqual(self.search(more, [GITHUB]), [])

    def test_credentials_of_the_environment(self):
        for env in ({"WARDER_COPILOT_TOKEN": READY}, {"COPILOT_GITHUB_TOKEN": GITHUB},
                    {"OPENAI_API_KEY": KEY, "GH_TOKEN": GITHUB}):
            url = self.start_server([{**message("I look", shell(HUNT)), "any_bearer": True},
                                     {**message("nothing there"), "any_bearer": True},
                                     {"status": 400, "body": f"you sent {READY} or {GITHUB} or {KEY}"}], GITHUB)
            provider = "openai" if "OPENAI_API_KEY" in env else "copilot"
            status, shown = self.run_words("agent", "--provider", provider, "--model", "gpt-test",
                                           "--endpoint", url, WARDER_GITHUB_API=url, text=b"look\nfail\n", **env)
            self.assertIn(b"nothing there", shown)
            mine = [value for value in env.values() if provider == "copilot" or value == KEY]
            self.assertEqual(self.search(shown, mine), [])


if __name__ == "__main__":
    agent_help.main()
