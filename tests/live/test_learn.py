#!/usr/bin/env python3
"""warder learn: the narrowest sensible policy, said so that a reviewer can agree with each line."""

import json
import os
import re
import unittest

from run_help import WARDER, RunCase, both_users, main, needs


class LearnCase(RunCase):
    def trace(self, *calls, name="t.jsonl", home="/home/u", project="/home/u/p", **header):
        """A trace by hand: (call, path, access[, more]) each."""
        lines = [dict({"warder_trace": 1, "version": "x", "host": "elsewhere", "argv": ["x"], "cwd": project,
                       "home": home, "project": project}, **header),
                 {"ev": "exec", "t": 0, "pid": 5, "exe": "/usr/bin/tool", "argv0": "tool"}]
        for call, path, access, *more in calls:
            lines.append(dict({"ev": "call", "t": 1, "pid": 5, "call": call, "path": path, "thing": "file",
                               "access": access.split(","), "ret": 0}, **(more[0] if more else {})))
        lines.append({"ev": "end", "t": 2, "events": len(lines) - 1})
        return self.write(name, "".join(json.dumps(line) + "\n" for line in lines))

    def learn(self, *words, status=0, **more):
        done = self.native(WARDER, "learn", *words, **more)
        if status is not None:
            self.assertStatus(done, status)
        return done

    def rules(self, *words, **more):
        """Of the rules their lines and comments, by the rule."""
        found = {}
        for line in self.learn(*words, **more).out.splitlines():
            rule, _, comment = line.partition("  # ")
            if rule and not rule.startswith("#"):
                found[rule.strip()] = comment
        return found

    def left_out(self, *words, **more):
        out = self.learn(*words, **more).out
        return [line[4:].partition("  # ")[0].strip() for line in out.splitlines() if line.startswith("#   ")]


class ByHand(LearnCase):
    def test_a_pattern_never_matches_the_sensitive_list(self):
        trace = self.trace(*[("openat", f"/home/u/.bash_{n:08}", "write,create") for n in range(40)],
                           *[("openat", f"/home/u/plain_{n:08}", "write,create") for n in range(40)])
        rules = self.rules(trace)
        self.assertTrue(any(rule.endswith("~/plain_*") for rule in rules), rules)
        self.assertFalse([rule for rule in rules if ".bash_" in rule and "*" in rule], rules)

    def test_what_is_longer_than_a_path_is_none(self):
        trace = self.trace(("openat", "/a" * 500000, "read"), ("openat", "/home/u/data/in", "read"))
        self.assertEqual(["allow r ~/data/in"], list(self.rules(trace)))

    def test_a_rule_says_who_how_often_in_how_many_and_what_else(self):
        one = self.trace(("openat", "/home/u/data/in", "read"), ("openat", "/home/u/data/in", "read"),
                         ("openat", "/home/u/out.txt", "write,create"))
        two = self.trace(("openat", "/home/u/data/in", "read"), name="u.jsonl")
        rules = self.rules(one, two)
        self.assertEqual({"allow r ~/data/in": "tool (openat), 3×, in 2 of 2 traces",
                          "allow w ~/out.txt": "tool (openat), 1×, in 1 of 2 traces; opens also delete,move,meta"}, rules)

    def test_what_is_always_open_needs_no_rule(self):
        file = self.trace(("execve", "/usr/bin/ls", "exec,read"), ("openat", "/etc/passwd", "read"),
                          ("openat", "/home/u/p/src/x.c", "write,create"), ("openat", "/dev/null", "write"))
        self.assertEqual({}, self.rules(file))

    def test_what_needs_nothing(self):
        file = self.trace(("openat", "/home/u/absent", "read", {"ret": -2, "thing": "absent"}),
                          ("openat", "/home/u/not-mine", "read", {"ret": -13, "verdict": "permissions"}),
                          ("openat", "/home/u/unsure", "read", {"unsure": ["a string was cut"]}))
        done = self.learn(file)
        self.assertNotIn("allow", done.out)
        self.assertIn("# Not learned from: 1 calls that the trace is unsure about.", done.out)

    def test_what_was_refused(self):
        refused = {"ret": -13, "verdict": "sandbox", "answer": "deny"}
        file = self.trace(("openat", "/home/u/wanted", "read", dict(refused, by="none")),
                          ("openat", "/home/u/no", "read", dict(refused, by="user")),
                          ("openat", "/home/u/never", "read", dict(refused, by="policy")))
        self.assertEqual({"allow r ~/wanted"}, set(self.rules(file)))
        self.assertEqual(["allow read ~/never", "allow read ~/no"], self.left_out(file))

    def test_sensitive_things_are_listed_and_open_nothing(self):
        file = self.trace(("openat", "/home/u/.ssh/id_rsa", "read"), ("openat", "/home/u/.bashrc", "write"),
                          ("openat", "/home/u/.bashrc", "read"), ("openat", "/home/u/p/.git/hooks/x", "write,create"),
                          ("openat", "/etc/shadow", "read"), ("openat", "/srv/.env", "read"),
                          ("connect", "/run/docker.sock", "connect"))
        self.assertEqual({"allow r ~/.bashrc"}, set(self.rules(file)))
        self.assertEqual({"allow read ~/.ssh/id_rsa", "allow write ~/.bashrc", "allow write,create ./.git/hooks/x",
                          "allow read /srv/.env", "allow connect /run/docker.sock", "allow read /etc/shadow"},
                         set(self.left_out(file)))

    def test_never_a_wide_tree(self):
        for top in ("/home/u", "/etc/opt", "/srv", "/home/u/.config", "/var/lib", "/home/other"):
            calls = [("openat", f"{top}/name{c}", "write") for c in "abcdefghijklmnopqrstuvwxyz"]
            for rule in self.rules(self.trace(*calls)):
                self.assertNotIn(rule.split()[-1], ("/", "~", "~/", "/home", "/home/u", "/etc", "/usr", "/srv", "~/.config",
                                                    "/var/lib", "/home/other"), rule)

    def test_a_wide_directory_that_was_made_is_itself_alone(self):
        """With no ~/.cache at first, `mkdir -p ~/.cache/x` makes it; all of it was not meant."""
        file = self.trace(("mkdir", "/home/u/.cache", "create"), ("mkdir", "/home/u/.cache/x", "create"),
                          ("openat", "/home/u/.cache/x/1", "write,create"))
        self.assertEqual({"allow create ~/.cache exact", "allow w ~/.cache/x"}, set(self.rules(file)))

    def test_siblings_become_their_directory_with_the_surplus_said(self):
        file = self.trace(*[("openat", f"/home/u/data/n{c}", "read") for c in "abcde"])
        self.assertEqual({"allow r ~/data": "tool (openat), 5×; opens also list; all below, of which 5 paths were seen"},
                         self.rules(file))

    def test_hooks_of_a_repository_that_is_made_are_pointed_out(self):
        file = self.trace(*[("openat", f"/srv/r/clone/.git/{n}", "write,create") for n in ("hooks/a", "config", "HEAD", "x", "y")],
                          ("openat", "/srv/q", "write"))
        rules = self.rules(file)
        self.assertIn("a repository's hooks or config are in it", rules["allow w /srv/r/clone/.git"])
        self.assertNotIn("hooks", rules["allow w /srv/q"])

    def test_versions_and_names_by_lot(self):
        file = self.trace(*[("openat", f"/home/u/.cache/tool-1.{i}.{i + 3}.db", "read") for i in range(3)],
                          ("openat", "/home/u/.cache/other", "read"),
                          ("openat", "/home/u/data/tmpk3J9xQ2b", "write,create", {"thing": "absent"}),
                          ("openat", "/tmp/ccAb3dX9.o", "write,create", {"thing": "absent"}), ("openat", "/tmp/ccAb3dX9.o", "read"),
                          ("openat", "/tmp/run-8f3k2x9Q/in", "read"),
                          ("openat", "/proc/4711/oom_score_adj", "write"))
        rules = self.rules(file)
        self.assertEqual({"allow r ~/.cache/tool-*.db", "allow r ~/.cache/other", "allow w ~/data",
                          "allow r /tmp/run-8f3k2x9Q/in"}, set(rules))
        self.assertIn("a pattern for 3 names", rules["allow r ~/.cache/tool-*.db"])
        self.assertEqual(["allow write /proc/4711/oom_score_adj", "read,write,create of names in /tmp"], self.left_out(file))

    def test_presets_where_they_cover(self):
        file = self.trace(("openat", "/home/u/.npm/_cacache/x", "write,create"), ("openat", "/home/u/.npm/_logs/y", "write,create"),
                          ("openat", "/dev/shm/sem.mp-2y01e0hn", "read,write,create"), ("openat", "/dev/shm/sem.n28xui", "read,write"),
                          ("openat", "/home/u/.config/git/ignore", "read"))
        rules = self.rules(file)
        self.assertEqual({"use node", "use python", "allow r ~/.config/git/ignore"}, set(rules))
        self.assertRegex(rules["use node"], r"2 paths, by 1 of the \d+ rules it has")

    def test_one_path_of_a_sensitive_preset_stays_left_out(self):
        file = self.trace(("openat", "/home/u/.config/gh/hosts.yml", "read"), ("openat", "/home/u/.config/gh/config.yml", "read"))
        self.assertEqual({}, self.rules(file))
        self.assertEqual(2, len(self.left_out(file)))

    def test_another_users_trace_reads_as_ours(self):
        one = self.trace(("openat", "/home/a/x", "read"), ("connect", "/home/a/src/p/s", "connect"), home="/home/a",
                         project="/home/a/src/p")
        two = self.trace(("openat", "/root/x", "read"), ("connect", "/root/q/s", "connect"), home="/root", project="/root/q",
                         name="two.jsonl")
        rules = self.rules(one, two)
        self.assertEqual({"allow r ~/x", "allow connect ./s"}, set(rules))
        self.assertIn("in 2 of 2 traces", rules["allow r ~/x"])

    def test_deterministic_and_whatever_the_order(self):
        calls = [("openat", f"/home/u/{a}/{b}", "read") for a in "xyz" for b in "1234"] + [("mkdir", "/srv/q", "create")]
        one, two = self.trace(*calls), self.trace(*reversed(calls), name="r.jsonl")
        self.assertEqual(self.learn(one).out, self.learn(one).out)
        self.assertEqual(self.learn(one).out, self.learn(two).out)

    def test_words_of_the_trace_are_escaped_and_redacted(self):
        file = self.trace(("openat", "/home/u/a\u001b[2Jb", "read"), ("openat", "/home/u/x # y", "read"))
        out = self.learn("--verify", file).out
        self.assertNotIn("\x1b", out)
        self.assertIn("allow r ~/a\\x1b[2Jb", out)
        self.assertIn("allow r ~/x\\ \\#\\ y", out)

    def test_verify(self):
        done = self.learn("--verify", self.trace(("openat", "/home/u/a", "read")))
        self.assertIn("verified: 1 accesses are allowed, 0 are listed", done.err)
        self.learn("--verify", "-", status=2)

    def test_diff(self):
        old = self.write("old", "allow r ~/known\n")
        file = self.trace(("openat", "/home/u/known", "read"), ("openat", "/home/u/new", "read"))
        done = self.learn("--diff", old, file, status=1)
        self.assertNotIn("known", done.out)
        self.assertIn("allow r ~/new", done.out)
        self.write("old", "allow r ~/known\nallow r ~/new\n")
        self.learn("--diff", old, file, status=0)
        self.write("old", "allow\n")
        self.learn("--diff", old, file, status=125)

    def test_usage_and_troubles(self):
        self.learn(status=2)
        self.learn("--nope", "x", status=2)
        self.assertIn("Usage", self.learn("--help").out)
        self.assertLess(self.learn("--help").out.count("\n"), 25)
        self.learn("/no/such", status=125)
        done = self.learn(self.write("no", "hello\n"), status=125)
        self.assertRegex(done.err, r"\Awarder: [^\n]+\n\Z")
        cut = self.trace(("openat", "/home/u/x", "read"))
        with open(cut, "r+", encoding="utf-8") as f:
            text = f.read()
            f.truncate(len(text) - 20)
        self.assertIn("incomplete", self.learn(cut).err)

    def test_many_names_in_little_memory(self):
        calls = [("openat", f"/home/u/data/d{i % 50}/f{i}", "read") for i in range(40000)]
        rules = self.rules("--verify", self.trace(*calls))
        self.assertEqual(["allow r ~/data"], list(rules))
        self.assertIn("40000×", rules["allow r ~/data"])


class Fleet(LearnCase):
    @needs("parallel")
    def test_learned_in_parallel_and_merged(self):
        traces = [self.trace(("openat", f"/home/u/data/{i}", "read"), ("openat", "/home/u/shared", "read,write"),
                             ("openat", f"/home/u/p{i}", "write,create"), name=f"t{i}.jsonl") for i in range(6)]
        script = os.path.join(os.environ["SOURCE_DIR"], "docs/examples/fleet.sh")
        self.env["WARDER"] = WARDER
        done = self.native("sh", script, *traces)
        self.assertStatus(done)
        self.assertEqual(1, done.out.count("~/shared"))
        self.assertEqual(done.out, self.native("sh", script, *reversed(traces)).out)
        fleet = self.write("fleet.policy", done.out)
        self.learn("--diff", fleet, *traces, status=0)
        # One more machine, in another step.
        more = self.write("more", self.learn(self.trace(("openat", "/home/u/q", "read"), name="q.jsonl")).out)
        merged = self.native(WARDER, "policy", "merge", more, fleet)
        self.assertEqual(done.out.count("\n") + 1, merged.out.count("\n"))


@both_users
class FromStrace(LearnCase):
    @needs("strace")
    def test_the_text_of_strace(self):
        self.write("outside/in", "x")
        log = os.path.join(self.dir, "log")
        done = self.native("strace", "-f", "-y", "-o", log, "sh", "-c",
                           f"cat {self.outside}/in > {self.outside}/out; cat ../outside/in; cat {self.outside}/none")
        if "ptrace" in done.err:
            self.skipTest("strace can't trace here")
        rules = self.rules("--verify", log)
        self.assertIn(f"allow r {self.outside}/in", rules)
        self.assertIn(f"allow w {self.outside}/out", rules)
        self.assertNotIn("none", str(rules))


if __name__ == "__main__":
    main()
