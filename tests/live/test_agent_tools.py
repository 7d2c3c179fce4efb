#!/usr/bin/env python3
"""Drives `warder agent -p` against a server on the loopback that speaks Copilot's protocol."""

import json
import os
import signal
import subprocess
import time

from agent_help import BEARER, PATIENCE, AgentCase, both_users, main, message, shell

# A time no other test sleeps, so that what is left of it can be found.
NAP = f"1234.{os.getpid()}"


@both_users
class Agent(AgentCase):
    # ---- the loop ----

    def test_tools_run_and_are_answered(self):
        status, out, err = self.run_agent(
            [
                message("Writing.", ("write_file", {"path": "sub/a.txt", "content": "alpha\n"})),
                message(
                    "",
                    ("read_file", {"path": "sub/a.txt"}),
                    ("list_dir", {"path": "sub"}),
                    shell("cat sub/a.txt; echo error >&2; exit 3"),
                    shell("pwd", cwd="sub"),
                ),
                message("All done."),
            ]
        )
        self.assertEqual((status, out), (0, "Writing.\nAll done.\n"), err)
        written, read, listed, ran, pwd = self.tool_answers()
        self.assertEqual(written["made_dirs"], ["sub"])
        self.assertEqual(read["content"], "alpha\n")
        self.assertEqual([e["name"] for e in listed["entries"]], ["a.txt"])
        self.assertEqual((ran["output"], ran["exit"]), ("alpha\nerror\n", 3))
        self.assertEqual(pwd["output"], os.path.realpath(self.project) + "/sub\n")
        # The user's request is one, what follows from it is the agent's.
        initiators = [r["headers"]["x-initiator"] for r in self.requests()]
        self.assertEqual(initiators, ["user", "agent", "agent"])
        names = [t["function"]["name"] for t in self.body(self.requests()[0])["tools"]]
        self.assertEqual(names, ["read_file", "write_file", "edit_file", "list_dir", "run_shell"])

    def test_a_refusal_is_told_with_path_access_verdict_and_answer(self):
        status, result, _ = self.run_json(
            [
                message("", ("read_file", {"path": self.notes})),
                message("", ("write_file", {"path": "../outside/new.txt", "content": "x"})),
                message("", shell("cat ../outside/notes.txt 2>/dev/null | wc -l")),
                message("Understood."),
            ]
        )
        self.assertEqual((status, result["result"], result["end"]), (0, "Understood.", "done"))
        read, write, piped = self.tool_answers()
        self.assertEqual(read["error"]["errno"], "EACCES")
        for answer, path, access in (
            (read, self.notes, ["read"]),
            (write, self.outside + "/new.txt", None),
            (piped, self.notes, ["read"]),
        ):
            (denied,) = answer["denied"]
            self.assertEqual(denied["path"], path)
            self.assertEqual((denied["verdict"], denied["answer"]), ("sandbox", "deny"))
            self.assertIs(denied["do_not_retry"], True)
            if access:
                self.assertEqual(denied["access"], access)
        self.assertIn("create", write["denied"][0]["access"])
        self.assertNotIn("read", write["denied"][0]["access"])
        # Swallowed by the program, seen all the same.
        self.assertEqual((piped["output"].strip(), piped["exit"]), ("0", 0))
        self.assertFalse(os.path.exists(self.outside + "/new.txt"))
        paths = sorted(d["path"] for d in result["denials"])
        self.assertEqual(paths[0], self.outside + "/new.txt")
        self.assertIn(self.notes, paths)

    def test_case_G1_a_refused_call_is_not_run_a_third_time(self):
        counted = "echo run >> count; cat ../outside/notes.txt"
        status, result, _ = self.run_json(
            [message("", shell(counted)) for _ in range(21)] + [message("never")]
        )
        self.assertEqual((status, result["end"]), (1, "repeated"))
        self.assertIn("third time", result["error"])
        with open(os.path.join(self.project, "count")) as f:
            self.assertEqual(f.read(), "run\nrun\n")
        self.assertEqual(len(self.requests()), 3)

    def test_printed_words_are_no_denial(self):
        words = "/home/u/.ssh/id_rsa: Permission denied (sandbox)"
        status, result, _ = self.run_json(
            [message("", shell(f"echo '{words}' >&2; exit 1"), shell("false")), message("Fine.")]
        )
        self.assertEqual((status, result["denials"]), (0, []))
        printed, false = self.tool_answers()
        self.assertIn(words, printed["output"])
        self.assertNotIn("denied", printed)
        self.assertEqual((false["exit"], "denied" in false), (1, False))

    # ---- what a tool gets ----

    def test_case_G2_no_secret_reaches_a_tool(self):
        # Its own environment, and the agent's, which root may read whatever Landlock says.
        look = "env; echo; tr '\\0' '\\n' < /proc/$PPID/environ; cat /proc/$PPID/cmdline"
        secrets = {
            "GH_TOKEN": "ghu_secret1",
            "OPENAI_API_KEY": "sk-secret2",
            "AWS_SECRET_ACCESS_KEY": "secret3",
            "DB_PASSWORD": "secret4",
            "OPENAI_BASE_URL": "http://user:secret5@127.0.0.1/",
        }
        status, _, err = self.run_agent(
            [message("", shell(look)), message("ok")], environment=dict(secrets, PLAIN="kept")
        )
        self.assertEqual(status, 0, err)
        output = self.tool_answers()[0]["output"]
        self.assertIn("PLAIN=kept", output)
        for name in [*secrets, "WARDER_COPILOT_TOKEN"]:
            self.assertFalse(name + "=" in output, name)
        own = output.partition("\n\n")[0]
        for name in ("WARDER_ENDPOINT", "WARDER_MODEL"):
            self.assertFalse(name + "=" in own, name)
        self.assertFalse("secretbearer" in output)
        for i in range(1, 6):
            self.assertFalse(f"secret{i}" in output, f"secret{i}")
        # Nor is the bearer anywhere in what the model is sent, or in our files.
        for request in self.requests():
            self.assertNotIn("secretbearer", json.dumps(request["body"]))
        found = subprocess.run(
            ["grep", "-rl", "secretbearer", self.home, self.project], capture_output=True
        )
        self.assertEqual(found.stdout, b"")

    def test_a_tool_has_no_terminal_no_input_and_no_descriptor_of_ours(self):
        status, _, err = self.run_agent(
            [
                message(
                    "",
                    shell("cat; test -t 0 || echo none; ls -l /proc/self/fd; (: < /dev/tty) 2>&1"),
                ),
                message("ok"),
            ]
        )
        self.assertEqual(status, 0, err)
        output = self.tool_answers()[0]["output"]
        self.assertTrue(output.startswith("none\n"), output)
        # 0, 1, 2 and the directory that ls itself reads.
        self.assertEqual(output.count(" -> "), 4, output)
        self.assertIn("0 -> /dev/null", output)

    def test_our_own_files_are_out_of_reach_whatever_is_allowed(self):
        state = os.path.join(self.home, ".local/state/warder")
        status, result, err = self.run_json(
            [
                message("", shell(f"cat {state}/audit.jsonl"), ("list_dir", {"path": state})),
                message("ok"),
            ],
            "-w",
            self.home,
        )
        self.assertEqual(status, 0, err)
        for answer in self.tool_answers():
            self.assertEqual(answer["denied"][0]["answer"], "deny")
            self.assertEqual(answer["denied"][0]["by"], "policy")
        self.assertEqual(len(result["denials"]), 2)

    def test_a_long_output_keeps_its_head_and_tail(self):
        status, _, err = self.run_agent(
            [message("", shell("echo first; seq 1 200000; echo last")), message("ok")]
        )
        self.assertEqual(status, 0, err)
        answer = self.tool_answers()[0]
        self.assertTrue(answer["output"].startswith("first\n1\n2\n"))
        self.assertTrue(answer["output"].endswith("200000\nlast\n"))
        self.assertIn("bytes left out", answer["output"])
        self.assertLess(len(answer["output"]), 40000)
        self.assertEqual(answer["output_bytes"], 1288895 + len("first\nlast\n"))

    def test_a_timeout_ends_the_whole_tree(self):
        began = time.monotonic()
        status, _, err = self.run_agent(
            [
                message("", shell(f"sleep {NAP}7 & echo begun; sleep {NAP}7", timeout_s=1)),
                message("ok"),
            ]
        )
        self.assertEqual(status, 0, err)
        answer = self.tool_answers()[0]
        self.assertEqual((answer["output"], answer["timed_out"]), ("begun\n", True))
        self.assertLess(time.monotonic() - began, 20)
        left = subprocess.run(["pgrep", "-f", f"sleep {NAP}7"], capture_output=True)
        self.assertEqual(left.stdout, b"")

    def test_what_outlives_a_command_does_not_hold_it_up(self):
        began = time.monotonic()
        status, _, err = self.run_agent(
            [message("", shell(f"sleep {NAP}8 & echo done")), message("ok")]
        )
        self.assertEqual(status, 0, err)
        self.assertEqual(self.tool_answers()[0]["output"], "done\n")
        self.assertLess(time.monotonic() - began, 20)
        left = subprocess.run(["pgrep", "-f", f"sleep {NAP}8"], capture_output=True)
        self.assertEqual(left.stdout, b"")

    def test_a_large_file_goes_both_ways(self):
        content = "".join(f"line {i} \u20ac\n" for i in range(6000))
        status, _, err = self.run_agent(
            [
                message("", ("write_file", {"path": "big", "content": content})),
                message("", ("read_file", {"path": "big"})),
                message("ok"),
            ]
        )
        self.assertEqual(status, 0, err)
        with open(os.path.join(self.project, "big")) as f:
            self.assertEqual(f.read(), content)
        self.assertEqual(self.tool_answers()[1]["content"], content)

    def test_an_edit_is_shown_made_and_told(self):
        status, out, err = self.run_agent(
            [
                message("", ("write_file", {"path": "a.txt", "content": "one\ntwo\n"})),
                message(
                    "",
                    ("edit_file", {"path": "a.txt", "old_string": "two", "new_string": "2"}),
                    ("edit_file", {"path": "a.txt", "old_string": "three", "new_string": "3"}),
                ),
                message("ok"),
            ],
            "--output", "stream-json",
        )
        self.assertEqual(status, 0, err)
        with open(os.path.join(self.project, "a.txt")) as f:
            self.assertEqual(f.read(), "one\n2\n")
        events = [json.loads(line) for line in out.splitlines()]
        self.assertEqual(
            [e.get("text", e["event"]) for e in events if e["event"] in ("tool", "diff", "tool_end")],
            ["tool", "@@ -0,0 +1,2 @@\n+one\n+two\n", "tool_end",
             "tool", "@@ -1,2 +1,2 @@\n one\n-two\n+2\n", "tool_end", "tool", "tool_end"],
        )
        written, edited, absent = self.tool_answers()
        self.assertEqual((written["added"], written["removed"]), (2, 0))
        self.assertEqual((edited["added"], edited["removed"]), (1, 1))
        self.assertIn("not in the file", absent["error"]["message"])

    def test_a_refused_write_shows_what_it_would_have_been(self):
        status, out, err = self.run_agent(
            [message("", ("write_file", {"path": self.notes, "content": "mine\n"})), message("ok")],
            "--rule", f"allow r {self.outside}",
        )
        self.assertEqual(status, 0, err)
        self.assertIn("-the notes outside\n  +mine\n  refused write", err)
        with open(self.notes) as f:
            self.assertEqual(f.read(), "the notes outside\n")

    def test_long_output_is_whole_in_a_file_that_the_model_can_read(self):
        status, _, err = self.run_agent(
            [
                message("", shell("seq 1 30000")),
                message("", shell("f=$(ls $TMPDIR/output-*); stat -c %a $f; wc -l <$f; sed -n 15000p $f")),
                message("ok"),
            ]
        )
        self.assertEqual(status, 0, err)
        long, looked = self.tool_answers()
        self.assertGreater(long["output_bytes"], 100000)
        self.assertNotIn("\n15000\n", long["output"])
        self.assertRegex(long["output_file"], "/output-[^/]+$")
        self.assertEqual(looked["output"], "600\n30000\n15000\n")
        self.assertNotIn("output_file", looked)
        self.assertFalse(os.path.exists(long["output_file"]))

    def test_a_tool_can_not_choose_where_its_output_is_kept(self):
        tmp = self.make_dir("kept")
        self.own()
        status, _, err = self.run_agent(
            [
                message("", shell(f"mv $TMPDIR $TMPDIR.gone && ln -s {self.outside} $TMPDIR && seq 1 30000")),
                message("ok"),
            ],
            "-w", tmp, "--no-preset", "tmp", environment={"TMPDIR": tmp},
        )
        self.assertEqual(status, 0, err)
        (ran,) = self.tool_answers()
        self.assertEqual((ran["exit"], os.listdir(self.outside)), (0, ["notes.txt"]), ran)

    def test_malformed_calls_are_answered(self):
        status, _, err = self.run_agent(
            [
                message(
                    "",
                    ("read_file", '{"path":'),
                    ("read_file", {"file": "x"}),
                    ("launch", {}),
                    shell("pwd", cwd="absent"),
                ),
                message("ok"),
            ]
        )
        self.assertEqual(status, 0, err)
        words = [a["error"]["message"] for a in self.tool_answers()]
        self.assertIn("no valid JSON", words[0])
        self.assertIn('no parameter "file"', words[1])
        self.assertIn('no tool "launch"', words[2])
        self.assertIn("absent", words[3])

    # ---- questions from a program ----

    def test_the_protocol_answers_a_question_in_place(self):
        url = self.serve(
            [
                message("", ("read_file", {"path": self.notes})),
                message("", shell("cat ../outside/notes.txt")),
                message("Read."),
            ]
        )
        events_r, events_w = os.pipe()
        answers_r, answers_w = os.pipe()
        agent = subprocess.Popen(
            **self.command(
                ["-p", "go", "--output", "json", "--events", str(events_w)]
                + ["--answers", str(answers_r)]
            ),
            env=self.environment(url),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            pass_fds=(events_w, answers_r),
            start_new_session=True,
        )
        self.addCleanup(agent.stdout.close)
        self.addCleanup(agent.stderr.close)
        os.close(events_w)
        os.close(answers_r)
        asked = []
        with os.fdopen(events_r) as events, os.fdopen(answers_w, "w", buffering=1) as answers:
            for line in events:
                event = json.loads(line)
                if event["event"] == "ask":
                    asked.append(event)
                    answer = {"id": event["id"], "answer": "allow", "scope": 0}
                    answers.write(json.dumps({**answer, "lifetime": "once"}) + "\n")
        out, err = agent.communicate(timeout=PATIENCE)
        self.assertEqual(agent.returncode, 0, err)
        self.assertEqual(json.loads(out)["result"], "Read.")
        self.assertEqual([q["path"] for q in asked], [self.notes, self.notes])
        self.assertEqual(asked[1]["access"], ["read"])
        read, cat = self.tool_answers()
        self.assertEqual(read["content"], "the notes outside\n")
        self.assertEqual(cat["output"], "the notes outside\n")
        self.assertNotIn("denied", read)

    def test_yes_grants_once_and_not_what_is_sensitive(self):
        key = os.path.join(self.home, ".ssh")
        os.mkdir(key)
        with open(key + "/id_rsa", "w") as f:
            f.write("PRIVATE\n")
        self.own()
        status, result, err = self.run_json(
            [
                message("", shell("cat ../outside/notes.txt"), shell(f"cat {key}/id_rsa")),
                message("ok"),
            ],
            "--yes",
        )
        self.assertEqual(status, 0)
        self.assertIn("--yes", err)
        notes, private = self.tool_answers()
        self.assertEqual(notes["output"], "the notes outside\n")
        self.assertNotIn("PRIVATE", private["output"])
        self.assertEqual(private["denied"][0]["path"], key + "/id_rsa")
        answers = {d["path"]: d["answer"] for d in result["denials"]}
        self.assertEqual(answers, {self.notes: "allow", key + "/id_rsa": "deny"})

    # ---- in and out ----

    def test_the_prompt_from_stdin(self):
        status, out, err = self.run_agent([message("Hi.")], prompt="-", text="line 1\nline 2\n")
        self.assertEqual((status, out), (0, "Hi.\n"), err)
        sent = self.body(self.requests()[0])["messages"]
        self.assertEqual(sent[-1], {"role": "user", "content": "line 1\nline 2\n"})
        self.assertEqual(sent[0]["role"], "system")

    def test_lines_from_a_pipe_are_turns_and_commands(self):
        url = self.serve(
            [message("First.", ("read_file", {"path": self.notes})), message("Second."), message("3rd.")]
        )
        done = subprocess.run(
            **self.command([]),
            env=self.environment(url),
            input="one\\\nline more\n/denials\n\nanother\n/usage\n",
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            start_new_session=True,
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertNotIn("warder> ", done.stdout)
        self.assertNotIn("\x1b", done.stdout)
        order = ["First.", "refused read", "Second.", "\nread " + self.notes, "3rd.", "2 turns"]
        at = [done.stdout.index(words) for words in order]
        self.assertEqual(at, sorted(at), done.stdout)
        sent = [m["content"] for m in self.body(self.requests()[-1])["messages"]]
        self.assertIn("one\nline more", sent)

    def test_a_failed_last_turn_from_a_pipe_is_status_1(self):
        url = self.serve([{"for": "chat", "status": 401, "body": "unauthorized"}] * 3)
        done = subprocess.run(
            **self.command([]),
            env=self.environment(url),
            input="one\n",
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            start_new_session=True,
        )
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)

    def test_stream_json_is_a_json_object_a_line(self):
        status, out, err = self.run_agent(
            [message("Caf\u00e9 ", shell("echo out")), message("End \u20ac.")],
            "--output",
            "stream-json",
        )
        self.assertEqual(status, 0, err)
        events = [json.loads(line) for line in out.splitlines()]
        text = "".join(e["text"] for e in events if e["event"] == "text")
        self.assertEqual(text, "Caf\u00e9 End \u20ac.")
        kinds = [e["event"] for e in events if e["event"] != "text"]
        self.assertEqual(kinds, ["tool", "output", "tool_end", "result"])
        self.assertEqual(events[-1]["result"], "End \u20ac.")
        self.assertEqual(events[-1]["model"], "gpt-test")

    def test_a_provider_that_fails_is_one_line_and_status_1(self):
        bad = {"error": {"message": "You have no quota", "code": "quota_exceeded"}}
        status, out, err = self.run_agent([{"for": "chat", "status": 402, "body": bad}])
        self.assertEqual((status, out), (1, ""))
        self.assertEqual(len(err.splitlines()), 1, err)
        self.assertIn("quota", err)

    def test_the_step_limit_is_status_1_and_said(self):
        status, result, _ = self.run_json(
            [message("", shell(f"echo {i}")) for i in range(9)], "--max-steps", "4"
        )
        self.assertEqual((status, result["end"], result["steps"]), (1, "steps", 4))
        self.assertIn("after 4 steps", result["error"])

    def test_the_time_limit_ends_what_runs(self):
        began = time.monotonic()
        status, result, _ = self.run_json(
            [message("", shell("echo begun; sleep 25"))], "--max-seconds", "1"
        )
        self.assertLess(time.monotonic() - began, 20)
        self.assertEqual((status, result["end"]), (1, "time"))

    def test_usage_is_status_2(self):
        for arguments in (
            ["--output", "yaml", "-p", "x"],
            ["--provider", "someone", "-p", "x"],
            ["--max-steps", "0", "-p", "x"],
            ["--output", "json"],
            ["--nonsense"],
            ["words"],
            ["-p"],
            ["-p", " "],
            ["--script", "/nonexistent/script", "-p", "x"],
        ):
            done = subprocess.run(
                **self.command(arguments),
                env=self.environment("http://127.0.0.1:9"),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=PATIENCE,
            )
            self.assertEqual(done.returncode, 2, (arguments, done.stderr))
            self.assertEqual(len(done.stderr.splitlines()), 1, (arguments, done.stderr))

    def test_a_broken_policy_runs_nothing(self):
        status, out, err = self.run_agent([message("x")], "--rule", "allow rz /x")
        self.assertEqual((status, out), (125, ""))
        self.assertIn(":1:", err)
        self.assertFalse(os.path.exists(self.log) and self.requests())

    def test_help_fits_a_screen_and_goes_to_stdout(self):
        done = subprocess.run(
            **self.command(["--help"]),
            env=self.environment("http://127.0.0.1:9"),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        lines = done.stdout.splitlines()
        self.assertLessEqual(len(lines), 24)
        self.assertLessEqual(max(map(len, lines)), 80)
        self.assertIn("--on-denial", done.stdout)

    def test_ctrl_c_ends_by_the_signal_and_leaves_nothing(self):
        url = self.serve([message("", shell(f"echo begun; sleep {NAP}9")), message("no")])
        agent = subprocess.Popen(
            **self.command(["-p", "go", "--output", "stream-json"]),
            env=self.environment(url),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        for line in agent.stdout:
            if json.loads(line)["event"] == "output":
                break
        agent.send_signal(signal.SIGINT)
        rest = [json.loads(line) for line in agent.stdout]
        self.assertEqual(agent.wait(PATIENCE), -signal.SIGINT)
        agent.stdout.close()
        self.assertEqual(rest[-1]["end"], "cancelled")
        left = subprocess.run(["pgrep", "-f", f"sleep {NAP}9"], capture_output=True)
        self.assertEqual(left.stdout, b"")


if __name__ == "__main__":
    main()
