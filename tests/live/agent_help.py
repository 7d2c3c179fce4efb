"""What the tests of `warder agent` share: a project, a home, a server on the loopback that speaks Copilot's protocol.

WARDER names the binary, MOCK the server. Everything happens below a directory of the test's own.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

WARDER = os.environ.get("WARDER", "build/agent/warder")
MOCK = os.environ.get("MOCK", "build/tests/support/mock_copilot")
NOBODY = 65534
PATIENCE = 60
BEARER = "tid=test;exp=1;secretbearer"


def message(text="", *calls):
    m = {"role": "assistant", "content": text}
    if calls:
        m["tool_calls"] = [
            {
                "id": f"call_{i}",
                "type": "function",
                "function": {
                    "name": name,
                    "arguments": args if isinstance(args, str) else json.dumps(args),
                },
            }
            for i, (name, args) in enumerate(calls)
        ]
    return {"for": "chat", "message": m}


def shell(command, **more):
    return ("run_shell", dict(command=command, **more))


def both_users(cls):
    """The class as it is, and once more as an ordinary user where we are root."""
    if os.geteuid() == 0:
        name = cls.__name__ + "AsUser"
        other = type(name, (cls,), {"uid": NOBODY, "__module__": cls.__module__})
        setattr(sys.modules[cls.__module__], name, other)
    return cls


class AgentCase(unittest.TestCase):
    uid = None

    def setUp(self):
        self.top = tempfile.mkdtemp(prefix="warder-agent-", dir="/var/tmp")
        self.addCleanup(shutil.rmtree, self.top, ignore_errors=True)
        self.project = self.make_dir("project")
        self.outside = self.make_dir("outside")
        self.home = self.make_dir("home")
        self.tmp = self.make_dir("tmp")  # what an agent that is killed leaves is removed with it
        self.notes = os.path.join(self.outside, "notes.txt")
        with open(self.notes, "w") as f:
            f.write("the notes outside\n")
        # Where the build is may be closed to other users.
        self.warder = shutil.copy(WARDER, os.path.join(self.top, "warder"))
        self.log = os.path.join(self.top, "requests.jsonl")
        self.own()

    def make_dir(self, name):
        path = os.path.join(self.top, name)
        os.mkdir(path)
        return path

    def own(self):
        if self.uid is not None:
            subprocess.run(["chown", "-R", f"{self.uid}:{self.uid}", self.top], check=True)

    def serve(self, lines):
        scenario = os.path.join(self.top, "scenario.jsonl")
        with open(scenario, "w") as f:
            f.writelines(json.dumps(line) + "\n" for line in lines)
        server = subprocess.Popen(
            [MOCK, "--scenario", scenario, "--log", self.log, "--bearer", BEARER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

        def stop():
            server.stdin.close()
            server.kill()
            server.wait()
            server.stdout.close()

        self.addCleanup(stop)
        return f"http://127.0.0.1:{server.stdout.readline().split()[1]}"

    def environment(self, url, **more):
        return {
            "HOME": self.home,
            "TMPDIR": self.tmp,
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "WARDER_COPILOT_TOKEN": BEARER,
            "WARDER_ENDPOINT": url,
            "WARDER_MODEL": "gpt-test",
            **more,
        }

    def command(self, arguments):
        drop = {} if self.uid is None else {"user": self.uid, "group": self.uid, "extra_groups": []}
        return dict(args=[self.warder, "agent", *arguments], cwd=self.project, **drop)

    def run_agent(self, lines, *arguments, prompt="go", text=None, environment=None, **popen):
        """One turn; (status, stdout, stderr)."""
        url = self.serve(lines)
        done = subprocess.run(
            **self.command(["--provider", "copilot", "-p", prompt, *arguments]),
            env=self.environment(url, **(environment or {})),
            input=text,
            stdin=None if text is not None else subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            start_new_session=True,  # no terminal: nobody to ask
            **popen,
        )
        return done.returncode, done.stdout, done.stderr

    def run_json(self, lines, *arguments, **options):
        status, out, err = self.run_agent(lines, "--output", "json", *arguments, **options)
        return status, json.loads(out), err

    def requests(self):
        with open(self.log) as f:
            sent = [json.loads(line) for line in f]
        return [r for r in sent if r["path"].endswith("/chat/completions")]

    @staticmethod
    def body(request):
        body = request["body"]
        return json.loads(body) if isinstance(body, str) else body

    def tool_answers(self):
        """What the model was told, in order, from the last request."""
        sent = self.body(self.requests()[-1])["messages"]
        return [json.loads(m["content"]) for m in sent if m["role"] == "tool"]

    def run_lines(self, lines, text, *arguments):
        """The REPL with lines from a pipe; what it printed."""
        done = subprocess.run(
            **self.command(["--provider", "copilot", *arguments]),
            env=self.environment(self.serve(lines)),
            input=text,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            start_new_session=True,
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return done.stdout


def main():
    for path in (WARDER, MOCK):
        if not os.access(path, os.X_OK):
            sys.exit(f"no program at {path!r}: set WARDER and MOCK")
    unittest.main(verbosity=2)
