#!/usr/bin/env python3
"""`warder mcp` with a client of our own: a message a line, and nothing else on stdout."""

import json
import os
import select
import shlex
import signal
import subprocess
import time

from run_help import TIMEOUT, WARDER, RunCase, both_users, is_alive, main, wait_until


class Client:
    """Speaks to one server; every line that comes is checked to be a message."""

    def __init__(self, case, *arguments, capabilities=None, version="2025-06-18", start=True, **more):
        self.case = case
        self.err = open(os.path.join(case.dir, "stderr"), "w+b")
        case.addCleanup(self.err.close)
        self.process = case.start([WARDER, "mcp", *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=self.err, bufsize=0, **more)
        self.rest, self.number, self.others = b"", 0, []
        if start:
            self.hello = self.request("initialize", protocolVersion=version, capabilities=capabilities or {},
                                      clientInfo={"name": "test", "version": "1"})["result"]
            self.send(method="notifications/initialized")

    def write(self, text):
        self.process.stdin.write(text.encode())

    def send(self, **message):
        self.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")

    def read(self, seconds=TIMEOUT):
        """The next message; None at the end."""
        end = time.monotonic() + seconds
        while b"\n" not in self.rest:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                raise AssertionError(f"no message came; so far {self.others}")
            more = os.read(self.process.stdout.fileno(), 65536)
            if not more:
                self.case.assertEqual(self.rest, b"")
                return None
            self.rest += more
        line, self.rest = self.rest.split(b"\n", 1)
        message = json.loads(line)
        self.case.assertEqual(message["jsonrpc"], "2.0", message)
        return message

    def until(self, wanted):
        """The first message that is wanted; those before it are kept in others."""
        while True:
            message = self.read()
            if message is None:
                raise AssertionError(f"it ended; so far {self.others}")
            if wanted(message):
                return message
            self.others.append(message)

    def post(self, method, **params):
        self.number += 1
        self.send(id=self.number, method=method, params=params)
        return self.number

    def answer_to(self, number):
        return self.until(lambda m: m.get("id") == number and "method" not in m)

    def request(self, method, **params):
        return self.answer_to(self.post(method, **params))

    def post_call(self, name, arguments, **more):
        return self.post("tools/call", name=name, arguments=arguments, **more)

    def call(self, name, arguments, **more):
        """The answer's object."""
        result = self.answer_to(self.post_call(name, arguments, **more))["result"]
        answer = json.loads(result["content"][0]["text"])
        self.case.assertEqual(result.get("structuredContent", answer), answer)
        self.case.assertEqual(result["isError"], "error" in answer)
        return answer

    def question(self):
        return self.until(lambda m: m.get("method") == "elicitation/create")

    def settle(self, question, action="accept", **content):
        result = {"action": action}
        if content:
            result["content"] = content
        self.send(id=question["id"], result=result)

    def close(self):
        """End as a client does; what was on stderr."""
        self.process.stdin.close()
        while self.read():
            pass
        self.case.assertEqual(self.process.wait(TIMEOUT), 0)
        self.err.seek(0)
        return self.err.read().decode()


@both_users
class Mcp(RunCase):
    def setUp(self):
        super().setUp()
        self.notes = self.write("outside/notes.txt", "the notes outside\n")

    def client(self, *arguments, **more):
        return Client(self, *arguments, **more)

    def asking(self, *arguments):
        return self.client(*arguments, capabilities={"elicitation": {}})

    # ---- the protocol ----

    def test_versions_are_negotiated(self):
        for asked, told in (("2025-06-18", "2025-06-18"), ("2024-11-05", "2024-11-05"),
                            ("2025-03-26", "2025-03-26"), ("1999-01-01", "2025-11-25")):
            client = self.client(version=asked)
            self.assertEqual(client.hello["protocolVersion"], told)
            self.assertEqual(client.hello["serverInfo"]["name"], "warder")
            self.assertIn("tools", client.hello["capabilities"])
            client.close()

    def test_the_tools_are_listed_with_their_schemas(self):
        client = self.client()
        tools = {t["name"]: t for t in client.request("tools/list")["result"]["tools"]}
        self.assertEqual(list(tools), ["read_file", "write_file", "edit_file", "list_dir", "run_shell"])
        schema = tools["edit_file"]["inputSchema"]
        self.assertEqual(schema["required"], ["path", "old_string", "new_string"])
        self.assertIs(tools["read_file"]["annotations"]["readOnlyHint"], True)
        self.assertIs(tools["run_shell"]["annotations"]["readOnlyHint"], False)
        self.assertEqual(client.request("ping")["result"], {})
        self.assertEqual(client.close(), "")

    def test_what_is_no_message_is_answered_and_nothing_breaks(self):
        client = self.client(start=False)
        for line, code in (("nonsense", -32700), ('{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600),
                           ('{"jsonrpc":"2.0","id":7}', -32600), ("[]x", -32700), ("3", -32600),
                           ('{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600),
                           ('{"jsonrpc":"2.0","id":8,"method":"tools/list"}', -32600)):
            client.write(line + "\n")
            self.assertEqual(client.read()["error"]["code"], code, line)
        client.write('\n  \n[{"jsonrpc":"2.0","id":"a","method":"ping"},{"jsonrpc":"2.0","id":"b","method":"ping"}]\n')
        self.assertEqual([client.read()["id"], client.read()["id"]], ["a", "b"])
        client.request("initialize", protocolVersion="2025-06-18", capabilities={})
        self.assertEqual(client.request("resources/list")["error"]["code"], -32601)
        self.assertEqual(client.request("tools/call", name="launch")["error"]["code"], -32602)
        self.assertEqual(client.request("tools/call")["error"]["code"], -32602)
        client.send(method="notifications/unknown")
        client.send(id="ask-99", result={"action": "accept"})
        self.assertIn("no parameter", client.call("read_file", {"file": "x"})["error"]["message"])
        # Cut anywhere, it is the same line.
        for byte in '{"jsonrpc":"2.0","id":99,"method":"ping"}\n':
            client.write(byte)
        self.assertEqual(client.answer_to(99)["result"], {})
        client.close()

    def test_tools_run_in_the_directory_and_answer(self):
        client = self.client()
        self.assertEqual(client.call("write_file", {"path": "a.txt", "content": "one\ntwo\n"})["created"], True)
        self.assertEqual(client.call("edit_file", {"path": "a.txt", "old_string": "two", "new_string": "2"})["added"], 1)
        self.assertEqual(client.call("read_file", {"path": "a.txt"})["content"], "one\n2\n")
        ran = client.call("run_shell", {"command": "cat a.txt; echo err >&2; exit 3"})
        self.assertEqual((ran["output"], ran["exit"]), ("one\n2\nerr\n", 3))
        self.assertEqual(client.close(), "")

    def test_several_calls_are_answered_each(self):
        client = self.client()
        numbers = [client.post_call("run_shell", {"command": f"echo {i}"}) for i in range(5)]
        self.assertEqual(client.request("ping")["result"], {})
        told = {m["id"]: m for m in client.others}
        for i, number in enumerate(numbers):
            message = told.get(number) or client.answer_to(number)
            self.assertEqual(json.loads(message["result"]["content"][0]["text"])["output"], f"{i}\n")
        client.close()

    def test_progress_is_told_where_it_is_wanted(self):
        client = self.client()
        client.call("run_shell", {"command": "echo a; sleep 0.3; echo b"}, _meta={"progressToken": "t1"})
        told = [m["params"] for m in client.others if m.get("method") == "notifications/progress"]
        self.assertEqual({p["progressToken"] for p in told}, {"t1"})
        self.assertEqual([p["message"] for p in told], ["a", "b"])
        counts = [p["progress"] for p in told]
        self.assertEqual(counts, sorted(set(counts)))
        client.others.clear()
        client.call("run_shell", {"command": "echo a"})
        self.assertEqual(client.others, [])
        client.close()

    # ---- the end of a call ----

    def test_a_cancelled_call_ends_and_is_not_answered(self):
        client = self.client()
        mark = os.path.join(self.project, "pid")
        number = client.post_call("run_shell", {"command": f"echo $$ >{mark}; sleep 100"})
        waits = client.post_call("run_shell", {"command": "echo never"})
        self.assertTrue(wait_until(lambda: os.path.exists(mark) and self.read(mark).strip()))
        # It is heard while a call runs.
        self.assertEqual(client.request("ping")["result"], {})
        client.send(method="notifications/cancelled", params={"requestId": waits})
        client.send(method="notifications/cancelled", params={"requestId": number, "reason": "enough"})
        self.assertEqual(client.call("run_shell", {"command": "echo on"})["output"], "on\n")
        self.assertEqual([m for m in client.others if m.get("id") in (number, waits)], [])
        self.assertFalse(is_alive(int(self.read(mark))))
        client.close()

    def test_a_client_that_goes_ends_what_runs(self):
        client = self.client()
        mark = os.path.join(self.project, "pid")
        client.post_call("run_shell", {"command": f"echo $$ >{mark}; sleep 100"})
        self.assertTrue(wait_until(lambda: os.path.exists(mark) and self.read(mark).strip()))
        client.close()
        self.assertFalse(is_alive(int(self.read(mark))))

    def test_what_waits_when_the_client_goes_is_answered(self):
        client = self.client()
        mark, never = os.path.join(self.project, "pid"), os.path.join(self.project, "never")
        runs = client.post_call("run_shell", {"command": f"echo $$ >{mark}; sleep 100"})
        waits = [client.post_call("run_shell", {"command": f"touch {never}"}) for _ in range(3)]
        self.assertTrue(wait_until(lambda: os.path.exists(mark) and self.read(mark).strip()))
        client.process.stdin.close()
        for number in waits:
            self.assertIn("closed stdin", client.answer_to(number)["error"]["message"])
        self.assertIn("ended while it ran", client.answer_to(runs)["error"]["message"])
        client.close()
        self.assertFalse(os.path.exists(never))

    def test_a_nul_in_a_string_is_not_where_it_ends(self):
        client = self.client()
        for id in ("a\0b", "\0", "a\\u0000", "\\\0"):
            client.send(id=id, method="ping")
            self.assertEqual(client.read(), {"jsonrpc": "2.0", "id": id, "result": {}})
        client.send(id="a\0c", method="tools/call", params={"name": "run_shell", "arguments": {"command": "sleep 100"}})
        client.send(id="a\0d", method="tools/call", params={"name": "run_shell", "arguments": {"command": "echo d"}})
        client.send(method="notifications/cancelled", params={"requestId": "a\0c"})
        self.assertEqual(client.read()["id"], "a\0d")
        client.send(id=1, method="tools/call", params={"name": "run_shell", "arguments": {"command": "echo a\0b"}})
        self.assertIn("U+0000", client.answer_to(1)["error"]["message"])
        client.write(json.dumps([{"jsonrpc": "2.0", "id": i, "method": "ping"} for i in ("x\0", 1, "x\0y")]) + "\n")
        self.assertEqual([client.read()["id"] for _ in range(3)], ["x\0", 1, "x\0y"])
        for bad in (b"\0", b"\x01", b"\xff", b"\xed\xa0\x80"):
            client.process.stdin.write(b'{"jsonrpc":"2.0","id":"a\\u0000' + bad + b'","method":"ping"}\n')
            answer = client.read()
            self.assertEqual((answer["id"], answer["error"]["code"]), (None, -32700))
        client.close()

    def test_a_signal_ends_it_by_that_signal(self):
        client = self.client()
        client.process.send_signal(signal.SIGTERM)
        self.assertEqual(client.process.wait(TIMEOUT), -signal.SIGTERM)

    # ---- refused calls ----

    def test_without_elicitation_the_answer_names_the_command(self):
        client = self.client()
        answer = client.call("read_file", {"path": self.notes})
        (denied,) = answer["denied"]
        self.assertEqual((denied["path"], denied["access"], denied["answer"]), (self.notes, ["read"], "deny"))
        (command,) = answer["to_allow"]
        # The very command, run by the user, does it; for the next server.
        self.assertStatus(self.native(WARDER, *shlex.split(command)[1:]))
        client.close()
        client = self.client()
        self.assertEqual(client.call("read_file", {"path": self.notes})["content"], "the notes outside\n")
        client.close()

    def test_an_old_client_is_never_asked(self):
        client = self.client(version="2024-11-05", capabilities={"elicitation": {}})
        result = client.answer_to(client.post_call("read_file", {"path": self.notes}))["result"]
        self.assertNotIn("structuredContent", result)
        self.assertIn("denied", json.loads(result["content"][0]["text"]))
        client.close()

    def test_a_question_is_asked_and_the_call_goes_on_in_place(self):
        client = self.asking()
        number = client.post_call("run_shell", {"command": f"cat {self.notes}; echo after"})
        q = client.question()
        words = q["params"]["message"]
        for expected in ("/cat asks to read " + self.notes, f"The command: cat {self.notes}"):
            self.assertIn(expected, words)
        schema = q["params"]["requestedSchema"]
        self.assertEqual(schema["properties"]["answer"]["enum"], ["no", "once", "session", "always", "never"])
        self.assertIn(f"allow read {self.notes} exact", schema["properties"]["scope"]["enum"][0])
        # Nothing else waits for the user.
        self.assertEqual(client.request("ping")["result"], {})
        client.settle(q, answer="session", scope=schema["properties"]["scope"]["enum"][0])
        answer = json.loads(client.answer_to(number)["result"]["content"][0]["text"])
        self.assertEqual(answer["output"], "the notes outside\nafter\n")
        # For the session: not asked again.
        self.assertEqual(client.call("read_file", {"path": self.notes})["content"], "the notes outside\n")
        client.close()

    def test_the_rules_of_a_move_are_one_line(self):
        client = self.asking()
        number = client.post_call("run_shell", {"command": f"mv {self.notes} {self.notes}.old"})
        q = client.question()
        first = q["params"]["requestedSchema"]["properties"]["scope"]["enum"][0]
        self.assertNotIn("\\n", first)
        self.assertRegex(first, rf"^1: allow \S+ {self.notes} exact; allow \S+ {self.notes}\.old exact$")
        client.settle(q, answer="once", scope=first)
        client.answer_to(number)
        self.assertTrue(os.path.exists(f"{self.notes}.old"))
        client.close()

    def test_no_is_no_in_every_form(self):
        for settle in (lambda c, q: c.settle(q, "decline"), lambda c, q: c.settle(q, "cancel"),
                       lambda c, q: c.settle(q, answer="no"), lambda c, q: c.settle(q, answer="maybe"),
                       lambda c, q: c.settle(q, answer="once", scope="99: all of it"),
                       lambda c, q: c.send(id=q["id"], error={"code": -1, "message": "no form"})):
            client = self.asking("--answer-timeout", "5")
            number = client.post_call("read_file", {"path": self.notes})
            settle(client, client.question())
            answer = json.loads(client.answer_to(number)["result"]["content"][0]["text"])
            self.assertEqual(answer["denied"][0]["answer"], "deny")
            self.assertNotIn("content", answer)
            client.close()

    def test_no_answer_in_time_withdraws_the_question(self):
        client = self.asking("--answer-timeout", "1")
        number = client.post_call("read_file", {"path": self.notes})
        q = client.question()
        gone = client.until(lambda m: m.get("method") == "notifications/cancelled")
        self.assertEqual(gone["params"]["requestId"], q["id"])
        answer = json.loads(client.answer_to(number)["result"]["content"][0]["text"])
        self.assertEqual(answer["denied"][0]["by"], "timeout")
        # Too late an answer is none to the next question.
        number = client.post_call("read_file", {"path": self.outside})
        client.settle(q, answer="always")
        client.close()

    def test_a_question_of_a_cancelled_call_is_withdrawn(self):
        client = self.asking()
        number = client.post_call("read_file", {"path": self.notes})
        q = client.question()
        client.send(method="notifications/cancelled", params={"requestId": number})
        gone = client.until(lambda m: m.get("method") == "notifications/cancelled")
        self.assertEqual(gone["params"]["requestId"], q["id"])
        self.assertEqual(client.call("run_shell", {"command": "echo on"})["output"], "on\n")
        client.close()

    def test_secrets_of_the_environment_reach_no_tool(self):
        client = self.client(env={**self.env, "OPENAI_API_KEY": "sk-secretsecret"})
        answer = client.call("run_shell", {"command": "env; cat /proc/$PPID/environ /proc/*/environ 2>/dev/null | tr '\\0' '\\n'"})
        self.assertNotIn("sk-secret", answer["output"])
        client.close()

    def test_usage(self):
        done = self.native(WARDER, "mcp", "--help")
        self.assertStatus(done)
        self.assertLessEqual(len(done.out.splitlines()), 24)
        for arguments in (["--nonsense"], ["words"], ["--events", "1"]):
            done = self.native(WARDER, "mcp", *arguments)
            self.assertStatus(done, 2)
            self.assertEqual((done.out, len(done.err.splitlines())), ("", 1))
        done = self.native(WARDER, "mcp", "--rule", "allow rz /x")
        self.assertStatus(done, 125)


if __name__ == "__main__":
    main()
