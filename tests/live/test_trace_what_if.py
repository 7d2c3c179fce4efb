#!/usr/bin/env python3
"""warder replay: under another policy, on another machine, of many traces; and what is no trace."""

import itertools
import json
import os
import random
import shutil
import subprocess

from run_help import TIMEOUT, WARDER, both_users, main, needs
from test_trace_replay import TraceCase

SCRIPT = """\
cat data.txt {outside}/open/file {outside}/asked/file > copy
cp copy secret/copy
mkdir d; mv copy d/copy; rm d/copy
chmod 600 data.txt
./script
exit 0
"""


class WithTrace(TraceCase):
    def setUp(self):
        super().setUp()
        self.write("project/script", "#!/bin/sh\ntrue\n", 0o755)
        self.live = self.record("sh", "-c", SCRIPT.format(outside=self.outside)).report

    def policy_of(self, text):
        return self.write("other", text.format(outside=self.outside))

    def what_if(self, text, *args):
        return self.replayed("--policy", self.policy_of(text), *args)

    def refused(self, report):
        return {(d["path"].replace(self.dir + "/", ""), *d["access"]) for d in report["denials"]}


@both_users
class AnotherPolicy(WithTrace):
    def test_what_it_would_have_refused(self):
        self.assertEqual({("outside/asked/file", "read"), ("project/secret/copy", "write", "create")},
                         self.refused({"denials": [d for d in self.live["denials"] if d["verdict"] == "sandbox"]}))
        self.assertEqual(set(), self.refused(self.what_if("allow r {outside}\n")))
        wider = self.what_if("allow r {outside}\ndeny r {outside}/open\ndeny meta data.txt\nforbid secret\n")
        self.assertEqual({("outside/open/file", "read"), ("project/data.txt", "meta"),
                          ("project/secret/copy", "write", "create")}, self.refused(wider))
        by = {d["path"].replace(self.dir + "/", ""): (d["verdict"], d["answer"], d["by"], os.path.basename(d["rule"]))
              for d in wider["denials"]}
        self.assertEqual(("sandbox", "deny", "policy", "other:2"), by["outside/open/file"])
        self.assertEqual(("sandbox", "deny", "policy", "other:4"), by["project/secret/copy"])

    def test_made_moved_and_removed(self):
        report = self.what_if("deny create d\ndeny delete d\n")
        self.assertIn(("project/d", "create"), self.refused(report))
        self.assertIn(("project/d/copy", "delete"), self.refused(report))
        (moved,) = [d for d in report["denials"] if "path2" in d]
        self.assertEqual("renameat2", moved["call"].replace("renameat", "renameat2").replace("22", "2"))

    def test_of_a_scripts_files_the_one_that_may_not_run(self):
        report = self.what_if("deny x /usr/bin/dash\ndeny x /usr/bin/bash\n")
        runs = [d for d in report["denials"] if "exec" in d["access"]]
        self.assertTrue(runs)
        for d in runs:
            self.assertIn(d["path"], ("/usr/bin/dash", "/usr/bin/bash"))
        self.assertIn("./script", {d.get("given") for d in runs} | {"./script"})

    def test_a_preset_is_added(self):
        self.write("home/.gitconfig", "[user]\n\tname = a\n")
        self.record("sh", "-c", "cat ~/.gitconfig")
        path = os.path.join(self.home, ".gitconfig")
        self.assertEqual([path], [d["path"] for d in self.replayed()["denials"]])
        self.assertEqual([], self.replayed("--preset", "git")["denials"])
        self.assertStatus(self.replay("--preset", "nosuch", self.trace), 125)

    def test_no_file_of_this_machine_is_looked_at(self):
        before = self.what_if("deny r {outside}/open\n")
        home = dict(self.env, HOME="/nonexistent", XDG_CONFIG_HOME="/nonexistent", XDG_STATE_HOME="/nonexistent")
        text = self.read(self.policy_of("deny r {outside}/open\n"))
        there = self.dir + "-there"
        os.mkdir(there)
        self.own(there)
        self.addCleanup(shutil.rmtree, there)
        shutil.move(self.trace, there)
        with open(os.path.join(there, "other"), "w") as f:
            f.write(text)
        shutil.rmtree(self.outside)
        shutil.rmtree(self.project)
        os.mkdir(self.outside)
        os.mkdir(self.project)
        os.symlink("/", os.path.join(self.outside, "open"))
        done = self.native(WARDER, "replay", "--json", "--policy", "other", "t.jsonl", cwd=there, env=home)
        after = json.loads(done.out)
        for d in [*before["denials"], *after["denials"]]:
            d["rule"] = d["rule"] and os.path.basename(d["rule"])
        self.assertEqual(before["denials"], after["denials"])

    def test_a_colleagues_paths(self):
        mapped = self.replayed("--map", f"{self.outside}=/elsewhere", "--map", f"{self.outside}/asked=~/asked")
        paths = {d["path"] for d in mapped["denials"]}
        self.assertIn(f"{self.home}/asked/file", paths)
        self.assertNotIn(f"{self.outside}/asked/file", paths)
        here = self.write("other", "allow r ~/asked\nallow r /elsewhere\n")
        self.assertEqual(set(), self.refused(self.replayed("--policy", here, "--map", f"{self.outside}=/elsewhere",
                                                           "--map", f"{self.outside}/asked=~/asked")))
        for wrong in ("x", "a=b", "/a=b", "=", "/a"):
            self.assertStatus(self.replay("--map", wrong, self.trace), 2)

    def test_the_ruleset_of_an_abi(self):
        text = self.replay("--ruleset", self.trace, status=0).out
        lines = dict(line.split("  ") for line in text.splitlines() if not line.startswith("#"))
        self.assertIn("read_file", lines["/usr"])
        self.assertNotIn(f"{self.outside}/denied", lines)
        first = json.loads(self.replay("--ruleset", "--json", "--abi", "1", self.trace, status=0).out)
        self.assertEqual(1, first["landlock_abi"])
        self.assertEqual({"refer", "truncate", "ioctl_dev"}, set(first["not_enforced"].split(",")))
        self.assertFalse(any("truncate" in r["rights"] for r in first["rules"]))
        for wrong in ("0", "x", "99"):
            self.assertStatus(self.replay("--ruleset", "--abi", wrong, self.trace), 2)

    def test_it_says_the_same_each_time(self):
        for args in ([], ["--policy", self.policy], ["--partial"]):
            outs = {self.replay("--json", *args, self.trace).out for _ in range(3)}
            self.assertEqual(1, len(outs))

    def test_text_and_status(self):
        done = self.replay(self.trace, status=1)
        self.assertIn(f"refused read {self.outside}/asked/file (cat, openat, 1×", done.out)
        self.assertIn("no rule allows it", done.out)
        self.assertIn("events of 1 trace", done.out)
        self.record("true")
        self.assertStatus(self.replay(self.trace), 0)
        help = self.replay("--help", status=0).out
        self.assertLessEqual(help.count("\n"), 24)


@both_users
class Many(WithTrace):
    def traces(self, n):
        files = []
        for i in range(n):
            self.trace = os.path.join(self.dir, f"t{i}.jsonl" + (".zst" if i % 2 else ""))
            self.record("sh", "-c", f"cat {self.outside}/asked/file {self.outside}/denied/file; echo {i} > secret/{i % 3}; "
                        f"[ {i} = 1 ] || cat {self.outside}/forbidden/file")
            files.append(self.trace)
        return files

    def test_several_in_one_call(self):
        files = self.traces(3)
        whole = self.replayed(files=files)
        counts = {d["path"]: d["count"] for d in whole["denials"]}
        self.assertEqual(3, counts[f"{self.outside}/asked/file"])
        self.assertEqual(2, counts[f"{self.outside}/forbidden/file"])
        self.assertEqual(files, [t["file"] for t in whole["replay"]["traces"]])

    def test_merging_is_the_same_in_any_order_and_grouping(self):
        files = self.traces(5)
        parts = [self.replay("--partial", f).out for f in files]
        whole = self.replay("--partial", *files).out
        chance = random.Random(1)

        def merge(texts):
            return self.replay("--partial", "-", input="".join(texts)).out
        for _ in range(6):
            left = list(parts)
            while len(left) > 1:
                chance.shuffle(left)
                n = chance.randint(2, len(left))
                left = [merge(left[:n]), *left[n:]]
            self.assertEqual(whole, left[0])
        # Partial results and traces together.
        mixed = self.write("part", parts[0] + parts[1])
        self.assertEqual(whole, self.replay("--partial", mixed, *files[2:]).out)

    def test_a_merged_report(self):
        files = self.traces(4)
        part = self.write("part", self.replay("--partial", *files).out)
        merged, whole = self.replayed(files=[part]), self.replayed(files=files)

        def key(d):
            return d["path"], d["access"], d["verdict"]
        self.assertEqual({(str(key(d)), d["count"]) for d in whole["denials"]},
                         {(str(key(d)), d["count"]) for d in merged["denials"]})
        self.assertEqual(set(whole["suggested"]), set(merged["suggested"]))
        self.assertEqual(whole["replay"]["events"], merged["replay"]["events"])
        self.assertStatus(self.replay(part), 1)

    def test_from_standard_input(self):
        with open(self.trace) as f:
            text = f.read()
        self.assertEqual(self.live["denials"], json.loads(self.replay("--json", "-", input=text).out)["denials"])


@both_users
class NoTrace(TraceCase):
    def test_is_told_with_file_line_and_what_was_expected(self):
        head = '{"warder_trace":1}\n'
        for text, line in (("", ": it is empty"), ('{"a":1}\n', ":1:1: expected a trace's first line"),
                           (head + '{"ev":"call","pid":1}\n', ':2:22: expected a member "call"'),
                           (head + "{]\n", ":2:2: expected a string"),
                           ('{"warder_trace":9}\n', ":1: a trace of another format"),
                           ('{"warder_partial":1,\n', ":1: expected a whole result"),
                           ('{"warder_trace":1,"policy":{"rules":[{"rule":"alow /x"}]}}\n', "expected")):
            file = self.write("no", text)
            done = self.replay(file)
            self.assertStatus(done, 125)
            self.assertIn(f"{file}", done.err)
            self.assertIn(line, done.err)
            self.assertEqual(1, done.err.count("\n"), done.err)
        for args in ([], ["--nosuch", "x"], ["--policy"]):
            self.assertStatus(self.replay(*args), 2)
        self.assertStatus(self.replay(os.path.join(self.dir, "gone")), 125)
        self.assertStatus(self.replay(self.dir), 125)

    def test_words_of_a_trace_move_no_terminal(self):
        file = self.write("t", '{"warder_trace":1,"policy":{"rules":[]}}\n'
                          '{"ev":"call","pid":1,"call":"openat","path":"/a\\u001b[31m\\nb","access":["read"],"ret":-13,"wall":-13,'
                          '"refused":["read"],"verdict":"sandbox","answer":"deny","by":"none","lifetime":"once",'
                          '"exe":"/x\\u001b]0;t","argv0":"x\\u0007","note":"\\u001b[1m"}\n')
        for args in ([], ["--json"], ["--partial"]):
            done = self.replay(*args, file)
            self.assertStatus(done, 1)
            self.assertFalse(set(done.out) & {"\x1b", "\x07"}, done.out)


if __name__ == "__main__":
    main()
