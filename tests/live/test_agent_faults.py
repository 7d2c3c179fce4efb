#!/usr/bin/env python3
"""Every way a model's server can fail: one sentence that says what to do, and the status.

Drives `warder agent -p` against tests/support/mock_copilot.c. WARDER names the binary, MOCK the server.
"""

import json
import os
import re
import signal
import subprocess
import time

import agent_help
from agent_help import AgentCase, message, shell

NEVER = {"retry-after": "9999"}  # longer than is waited for: it is told at once
ID = {"x-request-id": "REQ:1"}
SAID = {"choices": [{"delta": {"content": "half of an "}}]}  # shown, so it is not asked for again


def error(status, said, headers=(), **more):
    """An answer that is no success; said: its JSON error, or plain text."""
    plain = isinstance(said, str)
    return {"status": status, "body": said if plain else json.dumps({"error": said}),
            "type": "text/plain" if plain else "application/json", "headers": {**ID, **dict(headers)}, **more}


def code(name, words="words of the server"):
    return {"message": words, "code": name, "type": "invalid_request_error"}


def wire(head, body=""):
    return {"wire": head.replace("\n", "\r\n") + "\r\n\r\n" + body}


# what it is: (the server's answer, parts of the sentence)
REFUSED = {
    "model not offered": (error(400, code("model_not_supported")), "gpt-test", "/models"),
    "wrong body": (error(400, code("invalid_request_body")), "/clear", "words of the server"),
    "fine-grained token": (error(400, "checking third-party user token: bad request: Personal Access Tokens are "
                                      "not supported for this endpoint"), "WARDER_COPILOT_TOKEN", "warder login"),
    "expired bearer": (error(401, "unauthorized: token expired"), "WARDER_COPILOT_TOKEN", "token expired"),
    "no quota": (error(402, code("quota_exceeded", "You have no quota")), "quota is used up", "/model"),
    "terms of service": (error(403, "Access to this endpoint is forbidden. Please review our Terms of Service"),
                         "github.com/settings/copilot", "Terms of Service"),
    "no such page": (error(404, "404 page not found"), "/chat/completions", "WARDER_ENDPOINT"),
    "too long": (error(413, ""), "too long", "/clear"),
    "quota for now": (error(429, "quota exceeded"), "quota is used up for now", "/model"),
    "too many requests": (error(429, code("user_global_rate_limited:pro"), NEVER), "too many requests", "wait"),
    "outdated client": (error(466, ""), "update warder"),
    "what nobody knows": (error(499, "odd"), "odd", "HTTP 499"),
    "broken server": (error(500, "<html>\u001b[31mred", NEVER), "try again", "<html>\\e[31mred"),
    "no gateway": (error(502, "", NEVER), "try again", "HTTP 502"),
    "redirect": (error(302, "", {"Location": "http://elsewhere.invalid/"}), "http://elsewhere.invalid/",
                 "not followed"),
    "proxy's password": (error(407, ""), "proxy wants a user and a password"),
    "no status": (error(999, ""), "means nothing here"),
}
BROKEN = {
    "no end": ({"sse": [SAID]}, "in the middle: try again"),
    "cut in a line": ({"sse": [SAID, SAID], "drop_after": 80}, "closed the connection in the middle"),
    "cut by a reset": ({"sse": [SAID, SAID], "drop_after": 80, "reset": True}, "closed the connection in the middle"),
    "cut of HTTP/1.0": ({"sse": [SAID, SAID], "drop_after": 80, "old": True}, "in the middle"),
    "no chunk": ({"sse": [SAID], "bad_chunk": True}, "closed the connection in the middle"),
    "no gzip": ({"sse": ["x"], "bad_gzip": True}, "is garbled"),
    "an event that is no JSON": ({"sse": [SAID, "{oops"]}, "no JSON object: {oops", "check the endpoint"),
    "a page of a hotel": ({"raw": "<html>Sign in", "type": "text/html"}, "text/html", "check the endpoint"),
    "a page that says it is a stream": ({"raw": "<html>Sign in"}, "a web page"),
    "JSON of something else": ({"body": '{"object":"what"}'}, '"choices"'),
    "JSON cut in the middle": ({"sse": [SAID], "raw": '{"choices":[', "type": "application/json",
                                "headers": NEVER}, "no whole JSON"),
    "the stream complains": ({"sse": [SAID, {"error": {"message": "fell over", "code": "x"}}]}, "fell over"),
    "the stream is overloaded": ({"sse": [SAID, {"error": {"message": "busy", "code": "overloaded"}}]}, "busy",
                                 "try again"),
    "a filter": ({"sse": [{"choices": [{"delta": {}, "finish_reason": "content_filter"}]}]}, "content filter"),
    "a call without a name": ({"sse": [{"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "x"}]},
                                                     "finish_reason": "tool_calls"}]}]}, "without a name"),
    "a huge answer": ({"raw": ": " + "x" * 998 + "\n", "repeat": 34000}, "over 32 MiB"),
    "a huge event": ({"raw": "data: " + "x" * 2048, "repeat": 5000}, "too long"),
    "no HTTP at all": (wire("SSH-2.0-OpenSSH_9.2"), "does not speak HTTP"),
    "silence in the middle": ({"sse": [SAID, SAID], "stall_after": 80}, "sent nothing for 1 seconds"),
}
FINE = {
    "one byte at a time": {"chunk": 1},
    "chunks with extensions and a trailer": {"extensions": True, "chunk": 5},
    "HTTP/1.0": {"old": True},
    "packed": {"gzip": True},
    "packed, byte by byte": {"gzip": True, "chunk": 1},
    "the wrong type": {"type": "text/plain"},
    "another wrong type": {"type": "application/json; charset=utf-8"},
    "no stream": {"stream": False},
    "no stream, said to be one": {"stream": False, "type": "text/event-stream"},
}


class Faults(AgentCase):
    def fails(self, what, line, *says, **environment):
        lines = [{"for": "models", "status": 404, "body": ""}, line]
        status, out, err = self.run_agent(lines, "--stall-timeout", "1", environment=environment)
        told = [row for row in err.splitlines() if row.startswith("warder: ")]
        self.assertEqual((status, len(told)), (1, 1), f"{what}: {err}")
        for part in says:
            self.assertIn(part, told[0], what)
        self.assertIsNone(re.search(r"[\x00-\x08\x0b-\x1f\x7f]", err), what)
        self.assertEqual(len(self.requests()), 1, f"{what}: asked again")
        os.unlink(self.log)
        return told[0]

    def test_what_the_server_refuses(self):
        for what, (line, *says) in REFUSED.items():
            told = self.fails(what, line, *says, "request id REQ:1")
            self.assertIn(f"HTTP {line['status']}", told, what)

    def test_what_comes_broken(self):
        for what, (line, *says) in BROKEN.items():
            self.fails(what, line, *says)

    def test_what_only_looks_odd(self):
        for what, more in FINE.items():
            line = {**message("all of it, 20 \u20ac"), **more}
            status, out, err = self.run_agent([line])
            self.assertEqual((status, out), (0, "all of it, 20 \u20ac\n"), f"{what}: {err}")

    def test_the_same_of_responses(self):
        listed = {"for": "models", "body": json.dumps({"data": [
            {"id": "gpt-test", "supported_endpoints": ["/responses"],
             "capabilities": {"type": "chat", "supports": {"tool_calls": True}}}]})}
        for what, more in FINE.items():
            line = {**message("all of it"), "for": "responses", **more}
            status, out, err = self.run_agent([listed, line])
            self.assertEqual((status, out), (0, "all of it\n"), f"{what}: {err}")
        for line, part in (({"sse": [{"type": "response.failed", "response": {"error": {"message": "fell over"}}}]},
                            "fell over"),
                           ({"sse": [{"type": "response.output_text.delta", "delta": "half"}]}, "in the middle"),
                           (error(400, code("invalid_request_body")), "/clear")):
            status, out, err = self.run_agent([listed, {**line, "for": "responses"}])
            self.assertEqual(status, 1, err)
            self.assertIn(part, err)

    def test_a_tool_call_by_responses_and_back(self):
        listed = {"for": "models", "body": json.dumps({"data": [
            {"id": "gpt-test", "supported_endpoints": ["/responses"],
             "capabilities": {"type": "chat", "supports": {"tool_calls": True}}}]})}
        first = {**message("", shell("echo from the tool")), "for": "responses", "reasoning": "SEALED"}
        status, out, err = self.run_agent([listed, first, {**message("done"), "for": "responses"}])
        self.assertEqual((status, out), (0, "done\n"), err)
        with open(self.log) as f:
            sent = [json.loads(r["body"]) for r in map(json.loads, f) if r["path"] == "/responses"]
        kinds = [item.get("type", item.get("role")) for item in sent[1]["input"]]
        self.assertEqual(kinds, ["user", "reasoning", "function_call", "function_call_output"])
        self.assertEqual(sent[1]["input"][1]["encrypted_content"], "SEALED")
        self.assertIn("from the tool", sent[1]["input"][3]["output"])
        self.assertFalse(sent[1]["store"])

    def test_a_wait_that_the_server_asks_for_is_waited(self):
        begin = time.monotonic()
        status, out, err = self.run_agent([error(429, "slow", {"retry-after": "2"}), message("now")])
        self.assertEqual((status, out), (0, "now\n"))
        self.assertIn("too many requests: trying again in 2 s (1 of 3)", err)
        self.assertGreaterEqual(time.monotonic() - begin, 2)


class Interrupted(AgentCase):
    def start(self, lines, *arguments):
        url = self.serve(lines)
        p = subprocess.Popen(**self.command(["--provider", "copilot", *arguments]), env=self.environment(url),
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             start_new_session=True, bufsize=1)
        for pipe in (p.stdin, p.stdout, p.stderr):
            self.addCleanup(pipe.close)
        self.addCleanup(p.kill)
        return p

    def read_until(self, pipe, part):
        seen = ""
        while part not in seen:
            byte = pipe.read(1)
            self.assertTrue(byte, f"{part!r} never came: {seen!r}")
            seen += byte

    def test_one_turn_ends_by_the_signal(self):
        p = self.start([{"sse": [SAID, SAID], "stall_after": 60}], "-p", "go")
        self.read_until(p.stdout, "half of an")
        p.send_signal(signal.SIGINT)
        self.assertEqual(p.wait(agent_help.PATIENCE), -signal.SIGINT)

    def test_a_conversation_goes_on_and_stays_valid(self):
        p = self.start([{"sse": [SAID, SAID], "stall_after": 60}, message("the second answer")])
        p.stdin.write("first\n")
        self.read_until(p.stdout, "half of an")
        p.send_signal(signal.SIGINT)
        self.read_until(p.stdout, "cancelled")
        p.stdin.write("second\n")
        self.read_until(p.stdout, "the second answer")
        p.stdin.close()
        self.assertEqual(p.wait(agent_help.PATIENCE), 0)
        roles = [m["role"] for m in self.body(self.requests()[-1])["messages"]]
        self.assertEqual(roles[-3:], ["user", "assistant", "user"])

    def test_a_wait_before_another_try_is_ended(self):
        p = self.start([error(429, "slow", {"retry-after": "50"})], "-p", "go")
        self.read_until(p.stderr, "trying again")
        p.send_signal(signal.SIGINT)
        self.assertEqual(p.wait(agent_help.PATIENCE), -signal.SIGINT)


if __name__ == "__main__":
    agent_help.main()
