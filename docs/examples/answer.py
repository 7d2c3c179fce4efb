#!/usr/bin/env python3
"""
answer.py COMMAND [ARG...]: how another program runs a command under warder and answers its questions.

Here a question is answered by a rule of the harness's own: reading is fine below the directories in
MAY_READ (colon separated), everything else is refused. A harness with a user asks the user instead.
"""

import json
import os
import subprocess
import sys


def may(question):
    """The number of the scope that is allowed, or None."""
    below = [d for d in os.environ.get("MAY_READ", "").split(":") if d]
    inside = any(question["path"].startswith(d.rstrip("/") + "/") for d in below)
    harmless = set(question["access"]) <= {"read", "list"} and not question["sensitive"]
    return 0 if inside and harmless and question.get("scopes") else None


def run(argv):
    events, events_there = os.pipe()
    answers_there, answers = os.pipe()
    process = subprocess.Popen(
        ["warder", "run", "--events", str(events_there), "--answers", str(answers_there), "--", *argv],
        pass_fds=(events_there, answers_there))
    os.close(events_there)
    os.close(answers_there)
    with os.fdopen(events) as lines, os.fdopen(answers, "w") as out:
        for line in lines:
            event = json.loads(line)
            if event["event"] == "ask":
                scope = may(event)
                answer = {"id": event["id"], "answer": "deny" if scope is None else "allow"}
                if scope is not None:
                    answer.update(scope=scope, lifetime="session")
                print(json.dumps(answer), file=out, flush=True)
            elif event["event"] == "denied":
                print("refused:", ",".join(event["access"]), event["path"], file=sys.stderr)
    return process.wait()


if __name__ == "__main__":
    status = run(sys.argv[1:])
    sys.exit(status if status >= 0 else 128 - status)
