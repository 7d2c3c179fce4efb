#!/usr/bin/env python3
"""Sessions of `warder agent`: saved while they happen, gone on with after kill -9, made short when too long."""

import glob
import json
import os
import re
import signal
import stat
import subprocess
import unittest

from agent_help import PATIENCE, AgentCase, both_users, main, message, shell


@both_users
class Sessions(AgentCase):
    def saved(self):
        return sorted(glob.glob(os.path.join(self.home, ".local/state/warder/sessions/*.jsonl")))

    def lines(self, path):
        with open(path) as f:
            return [json.loads(line) for line in f]

    def sent(self):
        return self.body(self.requests()[-1])["messages"]

    def test_kill_9_loses_nothing_and_the_session_goes_on(self):
        url = self.serve([message("Looking.", shell("echo one"), shell("echo begun; sleep 100"))])
        agent = subprocess.Popen(
            **self.command(["-p", "the first words", "--output", "stream-json"]),
            env=self.environment(url), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
            start_new_session=True)
        self.addCleanup(agent.stdout.close)
        for line in agent.stdout:
            if "begun" in line:
                break
        agent.send_signal(signal.SIGKILL)
        agent.wait(PATIENCE)
        (path,) = self.saved()
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode), 0o700)
        # The last thing a crash may leave is half a line.
        with open(path, "a") as f:
            f.write('{"t":"2026-01-01T00:00:00.000Z","mess')
        status, result, err = self.run_json(
            [message("Going on.")], "--resume", prompt="the second words")
        self.assertEqual((status, result["result"]), (0, "Going on."), err)
        self.assertEqual(self.saved(), [path])
        self.assertEqual(result["session"] + ".jsonl", os.path.basename(path))
        sent = self.sent()
        self.assertEqual([m["role"] for m in sent],
                         ["system", "user", "assistant", "tool", "tool", "user"])
        self.assertEqual([sent[1]["content"], sent[5]["content"]], ["the first words", "the second words"])
        self.assertIn("one", sent[3]["content"])
        self.assertIn("Not run: the session ended", sent[4]["content"])
        # All of it is in the one file, every line whole.
        self.assertEqual([m["message"]["role"] for m in self.lines(path) if "message" in m],
                         ["system", "user", "assistant", "tool", "tool", "user", "assistant"])

    def test_a_session_is_named_by_its_beginning_and_is_of_its_project(self):
        _, first, _ = self.run_json([message("A.")], prompt="aaa")
        _, second, _ = self.run_json([message("B.")], prompt="bbb")
        self.assertNotEqual(first["session"], second["session"])
        _, again, _ = self.run_json([message("C.")], "--resume", first["session"], prompt="ccc")
        self.assertEqual(again["session"], first["session"])
        self.assertEqual([m["content"] for m in self.sent()[1:]], ["aaa", "A.", "ccc"])
        # Used last: that is the one without a name.
        _, last, _ = self.run_json([message("D.")], "--resume", prompt="ddd")
        self.assertEqual(last["session"], first["session"])
        status, out, err = self.run_agent([message("x")], "--resume=nonsense")
        self.assertEqual((status, out), (125, ""))
        self.assertIn("no saved session nonsense", err)
        other = self.make_dir("other")
        self.own()
        self.project = other
        status, _, err = self.run_agent([message("x")], "--resume")
        self.assertEqual(status, 125)
        self.assertIn("no session of this project", err)

    def hostile(self, name, *lines, head=None, end="\n"):
        """A saved session of this project that warder did not write."""
        path = os.path.join(self.home, ".local/state/warder/sessions", name + ".jsonl")
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        first = {"warder_session": 1, "id": name, "started": "2026-11-30T00:00:00Z", "version": "1",
                 "project": self.project, "cwd": self.project, "provider": "copilot", "model": "m"}
        with open(path, "w") as f:
            f.write((json.dumps(first) if head is None else head) + "\n")
            f.writelines((line if isinstance(line, str) else json.dumps(line)) + end for line in lines)
        self.own()
        return path

    def test_a_file_of_another_hand_is_refused_with_its_line(self):
        said = lambda **m: {"t": "x", "message": m}
        call = {"id": "c1", "type": "function", "function": {"name": "run_shell", "arguments": "{}"}}
        for lines, where in (
                (["[" * 100000], "line 2"), (["{" * 5000], "line 2"), (['{"a":' * 2000 + "1" + "}" * 2000], "line 2"),
                (["\x1b]0;title\x07\x1b[2J"], "line 2"), (["{}", "{}", '{"keep":-1}'], "line 4"),
                (['{"keep":1e300}'], None), (['{"keep":1}'], "line 2"),
                ([said(role="user", content=7)], "line 2"), ([said(role=["user"], content="x")], "line 2"),
                ([said(role="\x1b[31mroot", content="x")], "line 2"), ([said(content="x")], "line 2"),
                ([{"message": 5}], "line 2"), ([{"message": [said()]}], "line 2"), ([{"usage": "x"}], None),
                ([said(role="tool", tool_call_id="c1", content="x")], "line 2"),
                ([said(role="assistant", content=None, tool_calls=[call] * 200)], "line 2"),
                ([said(role="assistant", content=None, tool_calls={"a": 1})], "line 2"),
                ([said(role="assistant", content=None, tool_calls=[call]), said(role="user", content="x")], "line 3"),
                (['{"message":{"role":"user","content":"\udcff"}}'.encode("utf-8", "surrogateescape").decode("latin-1")], None)):
            with self.subTest(lines[0] if isinstance(lines[0], dict) else lines[0][:40]):
                self.hostile("evil", *lines)
                status, out, err = self.run_agent([message("Fine.")], "--resume=evil")
                self.assertEqual(status, 125 if where else 0, err)
                self.assertFalse(set(map(chr, range(32))) - {"\n"} & set(out + err) - {"\n"}, err)
                if where:
                    self.assertIn(where, err)
                    self.assertEqual(err.count("\n"), 1, err)
        for head in ("", "[]", "{}", '{"warder_session":2}', "x" * 100, "[" * 100000):
            self.hostile("evil", head=head)
            status, _, err = self.run_agent([message("Fine.")], "--resume=evil")
            self.assertEqual(status, 125, err)

    def test_a_file_that_is_none_is_not_waited_for(self):
        path = self.hostile("evil")
        with open(path) as f:
            text = f.read()
        for make in (os.mkfifo, os.mkdir, lambda p: os.symlink(self.notes, p)):
            os.path.isdir(path) and not os.path.islink(path) and os.rmdir(path) or os.path.lexists(path) and os.unlink(path)
            make(path)
            self.own()
            status, _, err = self.run_agent([message("Fine.")], "--resume=evil")
            self.assertEqual(status, 125, err)
        os.unlink(path)
        with open(self.notes) as f:
            self.assertEqual(f.read(), "the notes outside\n")
        self.assertIn("warder_session", text)

    def test_what_is_huge_is_read_or_refused(self):
        """Hundreds of thousands of messages, one of 30 MiB, sums past any number, bytes past the bound."""
        user = json.dumps({"message": {"role": "user", "content": "u"}})
        back = json.dumps({"keep": 0})
        usage = json.dumps({"usage": {"prompt": 2 ** 53, "cached": 2 ** 53, "completion": -(2 ** 53)}})
        self.hostile("evil", *[user] * 100000, back, *[user, back] * 50000, *[usage] * 3000,
                     json.dumps({"message": {"role": "user", "content": "w" * (30 << 20)}}), back, user)
        status, result, err = self.run_json([message("Fine.")], "--resume=evil")
        self.assertEqual((status, result["result"]), (0, "Fine."), err)
        path = self.hostile("evil")
        with open(path, "r+b") as f:
            f.truncate(257 << 20)
        status, _, err = self.run_agent([message("Fine.")], "--resume=evil")
        self.assertEqual(status, 125, err)
        self.assertEqual(err.count("\n"), 1, err)

    def test_the_commands_list_resume_and_count(self):
        _, first, _ = self.run_json([message("A.")], prompt="the words of the first")
        text = self.run_lines([message("B."), message("C.")],
                              "/sessions\nhello\n/resume\nagain\n/usage\n/resume nonsense\n/clear\n/why\n/why . w\n")
        self.assertIn(first["session"] + "  the words of the first", text)
        self.assertIn(f"This is session {first['session']} now; it has 3 messages.", text)
        self.assertEqual([m["content"] for m in self.sent()[1:]],
                         ["the words of the first", "A.", "again"])
        self.assertIn("; session " + first["session"], text)
        self.assertIn("no saved session nonsense", text)
        self.assertIn("Nothing was refused yet.", text)
        self.assertRegex(text, "w: allowed")
        self.assertEqual(len(self.saved()), 2)

    def test_the_help_names_every_way_of_detecting(self):
        text = self.run_lines([], "/help\n/detect nonsense\n")
        named, = re.findall(r"^ */detect \[(\S+)\]", text, re.M)
        ways = named.split("|")
        self.assertEqual("/detect takes " + ", ".join(ways[:-1]) + f" or {ways[-1]}.",
                         *re.findall(r"/detect takes .*", text))
        for way in ways:
            self.assertIn(f"on denial: {way}", self.run_lines([], f"/detect {way}\n"))

    def test_a_tool_reads_no_session(self):
        self.run_json([message("A.")], prompt="private words")
        (path,) = self.saved()
        status, _, err = self.run_agent(
            [message("", ("read_file", {"path": path}), shell(f"cat {path}")), message("ok")],
            "-r", "/")
        self.assertEqual(status, 0, err)
        read, cat = self.tool_answers()
        self.assertEqual(read["error"]["errno"], "EACCES")
        self.assertNotIn("private", cat["output"])

    def test_a_disk_that_is_full_is_said_once_and_stops_nothing(self):
        state = os.path.join(self.home, ".local/state/warder")
        self.run_json([message("A.")])
        os.rename(os.path.join(state, "sessions"), os.path.join(state, "away"))
        with open(os.path.join(state, "sessions"), "w"):
            pass
        status, out, err = self.run_agent([message("B.")])
        self.assertEqual((status, out), (0, "B.\n"))
        self.assertEqual(err.count("not saved any more"), 1)

    # ---- AGENTS.md ----

    def test_the_projects_words_are_read_behind_the_wall(self):
        with open(os.path.join(self.project, "AGENTS.md"), "w") as f:
            f.write("Use tabs.\n")
        self.own()
        status, _, err = self.run_agent([message("ok")])
        self.assertEqual(status, 0)
        self.assertIn(f"read {self.project}/AGENTS.md", err)
        self.assertIn("Use tabs.", self.sent()[0]["content"])
        # Refused: not read, not asked about, not counted as a denial.
        status, result, err = self.run_json(
            [message("ok")], "--deny", os.path.join(self.project, "AGENTS.md"))
        self.assertEqual((status, result["denials"]), (0, []))
        self.assertNotIn("Use tabs.", self.sent()[0]["content"])

    # ---- too long ----

    def test_a_long_conversation_is_made_short_and_goes_on(self):
        status, out, err = self.run_agent(
            [
                message("Reading.", shell("seq 1 3000")),
                message("SUMMARY: the numbers were listed."),
                message("Done."),
            ],
            "--context", "2000", prompt="list the numbers",
        )
        self.assertEqual((status, out), (0, "Reading.\nDone.\n"), err)
        self.assertIn("the conversation was long (about ", err)
        asked, on = [self.body(r)["messages"] for r in self.requests()[1:]]
        self.assertEqual([m["role"] for m in asked], ["system", "user"])
        self.assertIn("USER: list the numbers", asked[1]["content"])
        self.assertNotIn("tools", self.body(self.requests()[1]))
        self.assertEqual([m["role"] for m in on], ["system", "user"])
        self.assertIn("SUMMARY: the numbers were listed.", on[1]["content"])
        self.assertIn("list the numbers", on[1]["content"].split("SUMMARY")[1])
        # What is saved is what the model knows now.
        status, _, err = self.run_agent([message("E.")], "--resume", prompt="and?")
        self.assertEqual(status, 0, err)
        self.assertEqual([m["role"] for m in self.sent()], ["system", "user", "assistant", "user"])

    def test_a_server_that_says_too_long_gets_it_short(self):
        long = {"error": {"message": "prompt is too long", "code": "context_length_exceeded"}}
        long = json.dumps(long)
        status, out, err = self.run_agent(
            [
                message("Reading.", shell("seq 1 300")),
                {"for": "chat", "status": 400, "body": long},
                message("Short now."),
                message("Done."),
            ]
        )
        self.assertEqual((status, out), (0, "Reading.\nDone.\n"), err)
        # Where even that fails it is said, and it ends.
        status, out, err = self.run_agent(
            [message("Reading.", shell("seq 1 300"))] + [{"for": "chat", "status": 400, "body": long}] * 3)
        self.assertEqual(status, 1)
        self.assertIn("can't be made short", err)

    def test_the_command_makes_it_short(self):
        text = self.run_lines([message("A."), message("In short."), message("B.")],
                              "/compact\none\n/compact\ntwo\n")
        self.assertIn("nothing to make short yet", text)
        self.assertRegex(text, "About [0-9]+ tokens became [0-9]+")
        self.assertEqual([m["role"] for m in self.sent()], ["system", "user", "assistant", "user"])


if __name__ == "__main__":
    main()
