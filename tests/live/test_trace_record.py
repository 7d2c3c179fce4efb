#!/usr/bin/env python3
"""warder record: what stands in a trace, when the file has its name, and what befalls it."""

import base64
import json
import os
import signal
import subprocess
import time
import unittest

from run_help import TIMEOUT, WARDER, RunCase, both_users, fixture, main, needs, wait_until
from test_trace_replay import TraceCase


@both_users
class Recorded(TraceCase):
    def test_each_call_with_what_it_named_and_returned(self):
        done = self.record("sh", "-c", "echo x > new; echo y >> new; mkdir d; mv new d/old; ln -s d/old s; "
                           "chmod 600 d/old; cat s > /dev/null; rm s; cat gone; exit 3")
        self.assertStatus(done, 3)
        p = self.project
        head = self.events()[0]
        self.assertEqual((1, "report", p, self.home, self.uid),
                         tuple(head[k] for k in ("warder_trace", "mode", "cwd", "home", "uid")))
        made = self.calls(path=f"{p}/new", call="openat")
        self.assertEqual([("absent", ["write", "create"]), ("file", ["write"])],
                         [(c["thing"], c["access"]) for c in made])
        self.assertTrue(all(c["ret"] >= 0 and "O_WRONLY" in c["flags"] for c in made))
        (moved,) = [c for c in self.calls() if c["call"].startswith("rename")]
        self.assertEqual((f"{p}/new", f"{p}/d/old", ["delete", "move"], ["create", "move"], 0),
                         (moved["path"], moved["path2"], moved["access"], moved["access2"], moved["ret"]))
        (link,) = self.calls(path=f"{p}/s", call="symlinkat") or self.calls(path=f"{p}/s", call="symlink")
        self.assertEqual(("d/old", 0), (link["target"], link["ret"]))
        # Through the symlink: the thing itself, and what was said.
        read = [c for c in self.calls(path=f"{p}/d/old") if c.get("given") == "s"]
        self.assertEqual([["read"]], [c["access"] for c in read])
        # Done by warder in the command's place: its true result.
        (mode,) = [c for c in self.calls(path=f"{p}/d/old") if c["access"] == ["meta"]]
        self.assertEqual(("0600", 0), (mode["mode"], mode["ret"]))
        (gone,) = self.calls(path=f"{p}/gone")
        self.assertEqual(("absent", -2, "ENOENT"), (gone["thing"], gone["ret"], gone["errno"]))
        last = self.events()[-1]
        self.assertEqual(("end", len(self.events()) - 2), (last["ev"], last["events"]))

    def test_processes(self):
        self.record("sh", "-c", "true & wait; /bin/true; (exit 7); kill -TERM $$")
        events = self.events()
        main_pid = events[1]["pid"]
        forks = [e["child"] for e in events if e.get("ev") == "fork" and e["pid"] == main_pid]
        self.assertGreaterEqual(len(forks), 3)
        ends = {e["pid"]: e for e in events if e.get("ev") == "exit"}
        self.assertEqual({main_pid, *forks}, set(ends))
        self.assertEqual(15, ends[main_pid]["signal"])
        self.assertIn(7, [e.get("exit") for e in ends.values()])
        (run,) = [e for e in events if e.get("ev") == "exec" and e["argv0"] == "/bin/true"]
        self.assertEqual(["/bin/true"], run["argv"])
        (call,) = [c for c in self.calls(pid=run["pid"], call="execve")]
        self.assertEqual((run["exe"], ["read", "exec"], 0), (call["path"], call["access"], call["ret"]))
        self.assertIn("ld", os.path.basename(call["path2"]))
        order = [e["t"] for e in events[1:-1] if "t" in e and e["ev"] in ("fork", "exec", "exit")]
        self.assertEqual(sorted(order), order)

    def test_a_refused_call_and_what_was_decided(self):
        self.record("sh", "-c", f"cat {self.outside}/denied/file {self.outside}/asked/file; chmod 600 {self.outside}/asked/file")
        (denied,) = self.calls(path=f"{self.outside}/denied/file")
        self.assertEqual(("sandbox", "deny", "policy", f"{self.policy}:1", -13, -13, ["read"]),
                         tuple(denied[k] for k in ("verdict", "answer", "by", "rule", "ret", "wall", "refused")))
        read, mode = self.calls(path=f"{self.outside}/asked/file")
        self.assertEqual(("none", -13, ["read"]), (read["by"], read["ret"], read["refused"]))
        self.assertEqual((["meta"], -13), (mode["refused"], mode["ret"]))

    def test_an_answered_call_has_the_result_that_the_program_got(self):
        done = self.hold("--policy", self.policy, "--trace", self.trace, "--", "sh", "-c",
                         f"exec 5< {self.outside}/asked/file; cat <&5; mkdir {self.outside}/asked/d")
        self.assertStatus(done)
        self.assertEqual("asked\n", done.out)
        (opened,) = self.calls(path=f"{self.outside}/asked/file")
        self.assertEqual(("allow", "user", "once", -13), tuple(opened[k] for k in ("answer", "by", "lifetime", "wall")))
        self.assertGreaterEqual(opened["ret"], 3)
        (made,) = self.calls(path=f"{self.outside}/asked/d")
        self.assertEqual(("allow", 0), (made["answer"], made["ret"]))
        self.assertEqual(done.report["denials"], self.replayed()["denials"])

    def test_asked_at_the_end_and_run_again(self):
        done = self.hold("--policy", self.policy, "--trace", self.trace, "--on-denial", "retry", "--", "sh", "-c",
                         f"cat {self.outside}/asked/file {self.outside}/denied/file {self.outside}/gone; cat data.txt")
        self.assertEqual(2, done.report["runs"], done)
        self.assertEqual(2, max(e.get("run", 1) for e in self.events()))
        recorded = self.replayed()
        self.assertEqual(done.report["denials"], recorded["denials"])
        self.assertEqual(2, recorded["runs"])

    def test_without_a_wall(self):
        done = self.record("sh", "-c", f"cat {self.outside}/denied/file; mv {self.outside}/asked/file moved; chmod 600 secret/file; "
                           f"cat {self.outside}/gone; exec {self.outside}/asked/../open/nothing", options=["--permissive"])
        self.assertIn("denied", done.out)
        self.assertTrue(done.report["denials"])
        recorded = self.replayed()
        self.assertEqual(done.report["denials"], recorded["denials"])
        self.assertEqual("permissive", recorded["engine"]["mode"])
        # Held to the same rules the calls are the same, and refused.
        anew = self.replayed("--policy", self.policy)
        self.assertEqual([(d["path"], d["access"], d["errno"], d["verdict"], d["rule"]) for d in done.report["denials"]],
                         [(d["path"], d["access"], d["errno"], d["verdict"], d["rule"]) for d in anew["denials"]])
        self.assertEqual({"deny"}, {d["answer"] for d in anew["denials"]})

    def test_bytes_that_are_no_text_survive(self):
        name = os.fsencode(self.project) + b"/a\xff\n\"\\\x1b[31m"
        self.record("sh", "-c", 'echo x > "$1"; cat "$1"', "sh", os.fsdecode(name))
        made, read = [c for c in self.calls() if "path_b64" in c and c["call"] == "openat"]
        for c in (made, read):
            self.assertEqual(name, base64.b64decode(c["path_b64"]))
        raw = open(self.trace, "rb").read()
        self.assertNotIn(b"\x1b", raw)

    def test_secrets_are_redacted(self):
        self.record("sh", "-c", "true", "sh", "--password=hunter2", "TOKEN=ghp_abcdefghijklmnopqrstuvwxyz0123456789")
        text = self.read(self.trace)
        self.assertNotIn("hunter2", text)
        self.assertNotIn("ghp_abcdefghijkl", text)
        self.assertIn("[redacted]", text)

    @needs("zstd")
    def test_compressed_by_name(self):
        plain, self.trace = self.trace, self.trace + ".zst"
        done = self.record("sh", "-c", f"cat {self.outside}/asked/file")
        self.assertEqual(done.report["denials"], self.replayed()["denials"])
        subprocess.run(["zstd", "-qd", self.trace, "-o", plain], check=True, timeout=TIMEOUT)
        # As it was, under another name; and the other way.
        os.rename(self.trace, plain + ".x")
        self.assertEqual(done.report["denials"], self.replayed(files=[plain + ".x"])["denials"])
        self.assertEqual(done.report["denials"], self.replayed(files=[plain])["denials"])
        with open(plain + ".x", "rb+") as f:
            f.truncate(100)
        cut = self.native(WARDER, "replay", plain + ".x")
        self.assertStatus(cut, 125)
        self.assertIn("the compressed data is cut off before a whole line", cut.err)

    def test_32_bit_and_threads_and_static(self):
        for name in ("run_threads", "run_open_static"):
            with self.subTest(name):
                done = self.record(fixture(name), f"{self.outside}/asked/file")
                self.assertEqual(done.report["denials"], self.replayed()["denials"])


@both_users
class TheFile(TraceCase):
    def part(self):
        return [n for n in os.listdir(self.dir) if n.startswith("t.jsonl.") and n.endswith(".part")]

    def test_it_has_its_name_at_the_end(self):
        fifo = os.path.join(self.project, "fifo")
        os.mkfifo(fifo)
        self.own(fifo)
        process = self.start([WARDER, "record", "-o", self.trace, "--policy", self.policy, "--", "sh", "-c", "read x < fifo"])
        self.assertTrue(wait_until(lambda: self.part()))
        self.assertFalse(os.path.exists(self.trace))
        (part,) = self.part()
        self.assertEqual(0o600, os.stat(os.path.join(self.dir, part)).st_mode & 0o777)
        self.assertTrue(wait_until(lambda: os.stat(os.path.join(self.dir, part)).st_size > 0))
        with open(fifo, "w") as f:
            f.write("go\n")
        self.assertEqual(0, process.wait(TIMEOUT))
        self.assertEqual([], self.part())
        self.assertEqual("end", self.events()[-1]["ev"])

    def test_what_a_crash_leaves_reads_up_to_its_last_whole_line(self):
        process = self.start([WARDER, "record", "-o", self.trace, "--policy", self.policy, "--", "sh", "-c",
                              f"cat {self.outside}/denied/file; while :; do cat data.txt; done"],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.assertTrue(wait_until(lambda: self.part()))
        file = os.path.join(self.dir, self.part()[0])
        self.assertTrue(wait_until(lambda: os.stat(file).st_size > 200000))
        process.kill()
        process.wait()
        self.assertFalse(os.path.exists(self.trace))
        report = self.replayed(files=[file])
        self.assertFalse(report["replay"]["traces"][0]["complete"])
        self.assertEqual([f"{self.outside}/denied/file"], [d["path"] for d in report["denials"]])
        self.assertIn("incomplete", self.replay(file, status=1).out)

    def test_it_is_out_of_the_commands_reach(self):
        self.trace = os.path.join(self.project, "t.jsonl")
        done = self.record("sh", "-c", "for f in t.jsonl*; do echo x > $f; rm $f; mv $f y; done; echo x > t.jsonl; ln -s / t.jsonl; ls")
        self.assertEqual("end", self.events()[-1]["ev"])
        refused = {os.path.basename(d["path"]) for d in done.report["denials"]}
        self.assertIn("t.jsonl", refused)
        self.assertTrue(any(n.endswith(".part") for n in refused), refused)
        self.assertEqual(done.report["denials"], self.replayed()["denials"])

    def test_where_it_cant_be_written_nothing_is_run(self):
        for file in ("/nonexistent/t", "/proc/t", self.outside):
            done = self.native(WARDER, "record", "-o", file, "--", "touch", "ran")
            self.assertStatus(done, 125)
            self.assertEqual(1, done.err.count("\n"), done.err)
            self.assertIn(file, done.err)
            self.assertFalse(os.path.exists(os.path.join(self.project, "ran")))

    def test_a_full_disk_is_told_once_and_the_command_goes_on(self):
        # A limit on the size of files is a disk that is full.
        script = f"ulimit -f 64; trap '' XFSZ; exec {WARDER} record -o {self.trace} --policy {self.policy} -- " \
                 "sh -c 'i=0; while [ $i -lt 400 ]; do cat data.txt; i=$((i+1)); done > /dev/null; echo done'"
        done = self.native("bash", "-c", script, timeout=60)
        self.assertIn("done\n", done.out)
        self.assertEqual(1, done.err.count("the trace can't be written"), done.err)
        self.assertStatus(done, 125)
        self.assertFalse(os.path.exists(self.trace))
        (part,) = self.part()
        self.assertFalse(self.replayed(files=[os.path.join(self.dir, part)])["replay"]["traces"][0]["complete"])

    def test_a_disk_that_is_full_from_the_start_is_left_as_it_was(self):
        for name in ("t.jsonl", "t.jsonl.zst"):
            file = os.path.join(self.dir, name)
            script = f"ulimit -f 0; trap '' XFSZ; exec {WARDER} record -o {file} -- touch ran"
            done = self.native("bash", "-c", script, timeout=60)
            self.assertStatus(done, 125)
            self.assertIn("the trace can't be written", done.err)
            self.assertEqual([], [n for n in os.listdir(self.dir) if n.startswith("t.jsonl")])
            self.assertFalse(os.path.exists(os.path.join(self.project, "ran")))

    def test_a_device_is_written_straight(self):
        done = self.native(WARDER, "record", "-o", "/dev/null", "--", "true")
        self.assertStatus(done)
        self.assertTrue(os.path.exists("/dev/null"))

    def test_what_was_there_is_replaced_when_it_is_whole(self):
        self.write("t.jsonl", "old\n")
        self.record("true")
        self.assertEqual(1, self.events()[0]["warder_trace"])
        done = self.native(WARDER, "record", "-o", self.trace, "--", "/nonexistent/program")
        self.assertStatus(done, 127)

    def test_usage(self):
        for args in (["--", "true"], ["-o"], ["-o", self.trace], ["-o", self.trace, "--nosuch", "true"]):
            self.assertStatus(self.native(WARDER, "record", *args), 125)
        done = self.native(WARDER, "record", "--help")
        self.assertStatus(done)
        self.assertLessEqual(done.out.count("\n"), 24)


if __name__ == "__main__":
    main()
