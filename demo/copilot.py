#!/usr/bin/env python3
"""copilot.py WARDER MOCK: a whole session of the Copilot provider, without an account or a network.

MOCK speaks GitHub's login and Copilot's API on the loopback. warder signs in to it, and its agent is asked a
question on a real terminal: the model calls tools, one of them is refused and asked about, this program types the
answer, the call goes on in place, the model answers. Exits 1 where anything is not as promised.
"""

import os
import shutil
import subprocess
import sys
import tempfile

import demo


def start_server(mock):
    scenario = os.path.join(os.path.dirname(os.path.abspath(__file__)), "copilot.jsonl")
    server = subprocess.Popen([mock, "--scenario", scenario], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True)
    return server, f"http://127.0.0.1:{server.stdout.readline().split()[1]}"


def session(warder, url, base):
    project, outside, home = (os.path.join(base, name) for name in ("project", "outside", "home"))
    for path in (project, outside, home):
        os.makedirs(path)
    with open(os.path.join(project, "hello.txt"), "w", encoding="utf-8") as f:
        f.write("hello\n")
    with open(os.path.join(outside, "notes.txt"), "w", encoding="utf-8") as f:
        f.write("these notes are outside of the project\n")
    env = {"PATH": os.path.dirname(warder) + ":" + os.environ["PATH"], "HOME": home, "LANG": "C.UTF-8",
           "TERM": demo.terminal(), "NO_COLOR": os.environ.get("NO_COLOR", ""), "no_proxy": "127.0.0.1",
           "WARDER_GITHUB_WEB": url, "WARDER_GITHUB_API": url}

    demo.say("Sign in. The GitHub is one of the loopback, which says yes by itself a moment later.")
    status, shown = demo.follow(["warder", "login"], project, env, [])
    demo.expect(status == 0 and "MOCK-1234" in shown and "Copilot answers" in shown, "signed in")

    demo.say("Ask. The model calls two tools; what one of them reads outside is asked about while it waits.")
    status, shown = demo.follow(["warder", "agent"], project, env, [
        (b"Enter: 3]", b"2\r"), (b"warder> ", b"what do the notes outside say?\r"), (b"[y] once", b"y"),
        (b"project holds one file", b"/usage\r"), (b"tokens in", b"/quit\r")])
    demo.expect(status == 0, f"the agent ended with {status}")
    demo.expect("these notes are outside" in shown, "the tool read the file, once it was allowed")

    demo.say("Sign out.")
    status, shown = demo.follow(["warder", "logout"], project, env, [])
    demo.expect(status == 0 and not os.path.exists(os.path.join(home, ".config/warder/copilot.json")), "signed out")


def main():
    if len(sys.argv) != 3:
        print("usage: copilot.py WARDER MOCK", file=sys.stderr)
        return 2
    base = os.path.realpath(tempfile.mkdtemp(prefix="warder-demo-"))
    server, url = start_server(os.path.realpath(sys.argv[2]))
    try:
        session(os.path.realpath(sys.argv[1]), url, base)
    finally:
        server.stdin.close()
        server.kill()
        server.wait()
        shutil.rmtree(base, ignore_errors=True)
    demo.say("With an account: warder login, warder agent.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
