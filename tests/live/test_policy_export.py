#!/usr/bin/env python3
"""warder policy export: what the other program's wall then lets through is never more than the policy does."""

import json
import os
import subprocess
import sys

from policy_help import (WARDER, PolicyCase, both_users, in_wall, landlockconfig_rules, landrun_rules, main)

# What is tried at each path behind the wall: which of these come through.
TRY = r'''
import errno
def ok(f):
    try:
        f()
        return True
    except OSError as e:
        return e.errno not in (errno.EACCES, errno.EXDEV)
def made(path):
    os.mkdir(path)
    os.rmdir(path)
out = {}
for path in json.loads(os.environ["PATHS"]):
    d = os.path.isdir(path)
    out[path] = {
        "read": None if d else ok(lambda: os.close(os.open(path, os.O_RDONLY))),
        "write": None if d else ok(lambda: os.close(os.open(path, os.O_WRONLY))),
        "list": ok(lambda: os.listdir(path)) if d else None,
        "create": ok(lambda: made(path + "/new")) if d else None,
    }
print(json.dumps(out))
'''


class Export(PolicyCase):
    """As root alone: nothing but the wall refuses anything."""

    def setUp(self):
        super().setUp()
        if self.uid:
            self.skipTest("the wall alone is looked at")
        for name in ("a/x", "a/y", "a/sub/z", "a/sub/.env", "b/x", "b/hooks/h", "c", "it's, odd$/x"):
            self.write(f"outside/{name}", "#!/bin/sh\n", 0o755)

    def export(self, text, *words, status=None):
        file = self.write("rules", text.replace("OUT", self.outside))
        done = self.policy("export", *words, file, status=None)
        if status is not None:
            self.assertStatus(done, status)
        return done

    def everything(self):
        found = [self.outside]
        for top, dirs, files in os.walk(self.outside):
            found += [os.path.join(top, n) for n in dirs + files]
        return sorted(found)

    def assertNotWider(self, text, rules):
        """Each access that the exported wall lets through is one that the policy allows."""
        paths = self.everything()
        os.environ["PATHS"] = json.dumps(paths)
        system = [(p, {"read_file", "read_dir", "execute"}) for p in ("/usr", "/lib", "/lib64", sys.prefix)]
        let = in_wall(rules + system, TRY)
        file = self.write("rules", text.replace("OUT", self.outside))
        for path in paths: # what could be made, and then not removed
            if os.path.isdir(path + "/new"):
                os.rmdir(path + "/new")
        seen = 0
        for path in paths:
            for access, came_through in let[path].items():
                at = path + "/new" if access == "create" else path
                if not came_through:
                    continue
                seen += 1
                why = self.native(WARDER, "why", "--no-presets", "--policy", file, "--json", at, access)
                answer, = json.loads(why.out)["answers"]
                self.assertEqual("allow", answer["effect"], (text, path, access))
        return let, seen

    POLICIES = {
        "trees": "allow r OUT/a\nallow rw OUT/b\nallow r OUT/c\n",
        "an exception in it": "allow rwx OUT\ndeny w OUT/b/hooks\n",
        "asked about": "allow rwx OUT\nask w OUT/b/hooks\n",
        "a pattern": "allow rw OUT\ndeny r OUT/**/.env\n",
        "deep": "deny OUT/a/sub\nallow rw OUT/a\nallow r OUT/a/sub/z exact\n",
        "closed, and one thing open": "allow r OUT/b/x\ndeny r OUT/b\n",
        "partly": "allow write OUT/a\nallow read,list OUT/b\nallow create OUT/b\n",
        "forbid": "allow rwx OUT\nforbid OUT/a\n",
        "nothing": "",
    }

    def test_landlockconfig_is_never_wider(self):
        for name, text in self.POLICIES.items():
            with self.subTest(name):
                let, seen = self.assertNotWider(text, landlockconfig_rules(self.export(text).out))
                self.assertEqual(bool(text), seen > 0)

    def test_landrun_is_never_wider(self):
        for name, text in self.POLICIES.items():
            with self.subTest(name):
                self.assertNotWider(text, landrun_rules(self.export(text, "--format", "landrun").out))

    def test_what_can_be_said_is_said(self):
        let, _ = self.assertNotWider(self.POLICIES["an exception in it"],
                                     landlockconfig_rules(self.export(self.POLICIES["an exception in it"]).out))
        self.assertTrue(let[f"{self.outside}/b/hooks/h"]["read"])
        self.assertFalse(let[f"{self.outside}/b/hooks/h"]["write"])
        self.assertTrue(let[f"{self.outside}/b/x"]["write"])
        self.assertTrue(let[f"{self.outside}/a"]["create"])
        self.assertFalse(let[f"{self.outside}/b"]["create"])

    def test_all_that_is_not_said_is_listed(self):
        done = self.export("allow rw OUT/a\n", status=0)
        self.assertEqual(1, done.err.count("\n"), done.err)
        self.assertIn("note: Landlock has no right for meta", done.err)
        for text, said in {
            "allow rwx OUT\ndeny w OUT/b/hooks\n": "can't be given to all of it",
            "deny r OUT/x\n": "refused by having no rule",
            "ask r OUT/x\n": "nobody is asked there",
            "allow r OUT/*.c\n": "a pattern can't be said",
            "allow list OUT exact\n": "can't be said",
            "allow rw OUT/c\n": "of this name",
        }.items():
            with self.subTest(text):
                done = self.export(text, status=1)
                self.assertRegex(done.err, rf"warder: left out: [^\n]*\(/[^\n]*/rules:\d+\): [^\n]*{said}")

    def test_round_trip(self):
        text = (f"allow r {self.outside}/a\nallow rw {self.outside}/b\nallow rwx {self.dir}/later\n"
                f"allow read {self.outside}/c\nallow rx {self.outside}/it\\'s,\\ odd$\n")
        first = self.export(text, status=0).out
        json_file = self.write("c.json", first)
        done = self.policy("import", "--yes", json_file)
        self.assertNotIn("not taken", done.err)
        saved = {" ".join(line.partition("  #")[0].split())
                 for line in self.read(self.policy("path").out.strip()).splitlines()}
        self.assertEqual(sorted(text.splitlines()), sorted(saved))
        self.assertEqual(first, self.policy("export").out)

    def test_saved_project_and_effective(self):
        self.policy("--project", "allow", "r", f"{self.outside}/a")
        rules = landlockconfig_rules(self.policy("--project", "export").out)
        self.assertEqual([(f"{self.outside}/a", {"read_file", "read_dir"})], rules)
        self.assertEqual([], landlockconfig_rules(self.policy("export").out))
        rules = dict(landlockconfig_rules(self.policy("export", "--effective", status=1).out))
        self.assertEqual({"execute", "read_file", "read_dir"}, rules["/usr"])
        self.assertIn(f"{self.outside}/a", rules)
        self.assertNotIn("/etc", rules)
        self.assertNotIn("/etc/shadow", rules)
        self.assertEqual({"read_file"}, rules["/etc/passwd"])

    def test_a_shell_reads_the_landrun_line(self):
        done = self.export("allow r OUT/a\nallow rx OUT/it\\'s,\\ odd$\n", "--format", "landrun", status=1)
        self.assertIn("comma", done.err)
        seen = subprocess.run(["sh", "-c", "landrun() { printf '%s\\n' \"$@\"; }\n" + done.out], capture_output=True,
                              text=True, check=True, timeout=20)
        self.assertEqual(["--best-effort", "--unrestricted-network", "--ro", f"{self.outside}/a", "--", "COMMAND"],
                         seen.stdout.split("\n")[:-1])

    def test_what_is_not_there_is_one_line(self):
        done = self.export("".join(f"allow r OUT/no{i}\n" for i in range(7)), "--format", "landrun", status=1)
        told = [line for line in done.err.splitlines() if "exist" in line]
        names = ", ".join(f"{self.outside}/no{i}" for i in range(5))
        self.assertEqual([f"warder: left out: {names} and 2 more: they do not exist, and landrun would end there"], told)
        done = self.export("allow r OUT/no\n", "--format", "landrun", status=1)
        self.assertIn(f"warder: left out: {self.outside}/no: it does not exist, and landrun would end there\n", done.err)

    def test_usage(self):
        self.policy("export", "--format", "toml", status=2)
        self.policy("export", "a", "b", status=2)
        self.policy("export", "/no/such", status=125)
        self.policy("show", "--format", "landrun", status=2)


if __name__ == "__main__":
    main()
