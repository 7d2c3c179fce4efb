#!/usr/bin/env python3
"""A recorded run of a real tool, replayed: the live report's denials, one for one."""

import json
import os
import subprocess

from run_help import TIMEOUT, WARDER, RunCase, allow, both_users, deny, main, needs

# What the run may: its project, and of what lies outside a few things, each refused in its own way.
POLICY = """\
deny   rw   {outside}/denied
forbid      {outside}/forbidden
allow  r    {outside}/open
deny   w    secret
"""


class TraceCase(RunCase):
    trace = None

    def setUp(self):
        super().setUp()
        self.policy = self.write("policy", POLICY.format(outside=self.outside))
        self.trace = os.path.join(self.dir, "t.jsonl")
        for name in ("denied", "forbidden", "open", "asked"):
            self.write(f"outside/{name}/file", f"{name}\n")
        self.write("project/secret/file", "s\n")
        self.write("project/data.txt", "".join(f"line {i}\n" for i in range(50)))

    def record(self, *argv, options=(), **more):
        """The run's result, with its live report."""
        done = self.native(WARDER, "record", "-o", self.trace, "--report", self.report_file,
                           "--policy", self.policy, "--on-denial", "report", *options, "--", *argv, **more)
        done.report = self.read_report()
        return done

    def replay(self, *args, status=None, **more):
        done = self.native(WARDER, "replay", *args, **more)
        if status is not None:
            self.assertStatus(done, status)
        return done

    def replayed(self, *args, files=None, **more):
        return json.loads(self.replay("--json", *args, *(files or [self.trace]), **more).out)

    def events(self, file=None):
        with open(file or self.trace, encoding="utf-8", errors="surrogateescape") as f:
            return [json.loads(line) for line in f]

    def calls(self, **fields):
        return [e for e in self.events() if e.get("ev") == "call" and all(e.get(k) == v for k, v in fields.items())]


# Twenty tools, each with something that it is refused.
TOOLS = {
    "bash": "for f in {outside}/*/file data.txt; do cat $f; echo x >> $f; done; source {outside}/asked/file",
    "git": "git init -q . && git add data.txt && git -c user.name=a -c user.email=a@b commit -qm x; "
           "git clone -q . {outside}/asked/clone; git log; cp data.txt .git/hooks/pre-commit",
    "make": "printf 'all: out\\nout: data.txt\\n\\tcp $< $@\\n\\tcp $@ {outside}/denied/x\\n' > Makefile; make; make -k",
    "gcc": "echo 'int main(void){{return 0;}}' > a.c; gcc -c a.c -o {outside}/asked/a.o; gcc a.c -o a.out && ./a.out",
    "python3": "python3 -c \"import os\nfor p in ('{outside}/open/file','{outside}/forbidden/file','secret/file'):\n"
               "  for m in 'ra':\n    try: open(p,m)\n    except OSError as e: print(e)\n"
               "try: os.rename('data.txt','{outside}/asked/data')\nexcept OSError as e: print(e)\"",
    "node": "node -e \"const fs=require('fs');for(const p of ['{outside}/open/file','{outside}/denied/file'])"
            "try{{fs.readFileSync(p)}}catch(e){{console.log(e.code)}}\"",
    "tar": "tar cf a.tar data.txt secret; tar xf a.tar -C {outside}/asked; mkdir o; tar xf a.tar -C o; tar cf b.tar {outside}/denied",
    "cp": "cp -a secret copy; cp -a data.txt secret/; cp -r {outside}/open o; cp -r {outside}/forbidden o",
    "find": "find . {outside} -type f -newer data.txt; find {outside} -name file -delete",
    "grep": "grep -r line . {outside}",
    "sed": "sed -i s/line/row/ data.txt; sed -i s/s/t/ secret/file {outside}/asked/file",
    "perl": "perl -e 'for (@ARGV) {{ open(F, \"<\", $_) or print \"$_: $!\\n\"; unlink $_ or print \"$!\\n\" }}' "
            "{outside}/open/file {outside}/denied/file data.txt secret/file",
    "awk": "awk '{{print > \"{outside}/asked/\" NR % 3}}' data.txt; awk 1 {outside}/denied/file",
    "sqlite3": "python3 -c \"import sqlite3; c=sqlite3.connect('x.db'); c.execute('create table t(a)'); c.commit()\n"
               "try: sqlite3.connect('secret/x.db').execute('create table t(a)')\nexcept Exception as e: print(e)\"",
    "curl": "python3 -m http.server 0 >log 2>&1 & p=$!; sleep 0.3; curl -s -o {outside}/denied/page "
            "\"http://127.0.0.1:$(sed -n 's/.*port \\([0-9]*\\).*/\\1/p' log)/data.txt\"; curl -sK {outside}/asked/file; kill $p",
    "ln": "ln data.txt hard; ln -s data.txt soft; ln data.txt secret/hard; ln secret/file here; ln {outside}/open/file there",
    "install": "install -m 600 data.txt a; install -m 600 data.txt {outside}/asked/a; install -d d/e secret/d",
    "touch": "touch new data.txt secret/new {outside}/asked/new {outside}/open/file; chmod 600 secret/file; chown 0 {outside}/open/file",
    "mv": "mv data.txt moved; mv moved secret/; mv secret s2; mv {outside}/open {outside}/opened; mv {outside}/asked/file .",
    "env": "PATH={outside}/denied:{outside}/asked:$PATH env true; {outside}/asked/file; cp /bin/true secret-tool; "
           "chmod +x secret-tool; ./secret-tool; echo '#!{outside}/denied/file' > s; chmod +x s; ./s",
}


@both_users
class TwentyTools(TraceCase):
    def check(self, tool):
        done = self.record("bash", "-c", TOOLS[tool].format(outside=self.outside), timeout=60)
        live = done.report
        self.assertTrue(live["denials"], f"{tool} was refused nothing{done}")
        recorded = self.replayed()
        self.assertEqual(live["denials"], recorded["denials"])
        for key in ("status", "suggested", "command", "cwd", "host", "kernel", "uid", "started", "grants"):
            self.assertEqual(live[key], recorded[key], key)
        # Decided anew by the same rules it comes out the same.
        anew = self.replayed("--policy", self.policy)
        # But for what was refused for what it is, not for its name.
        by_name = [d for d in live["denials"] if "note" not in d]
        self.assertEqual(by_name, anew["denials"])
        self.assertEqual({d["note"] for d in live["denials"] if "note" in d},
                         {u["why"] for u in anew["replay"]["unsure"]})
        self.assertEqual([], recorded["replay"]["unsure"])


for tool in TOOLS:
    setattr(TwentyTools, f"test_{tool}", needs("python3" if tool == "sqlite3" else tool)(
        lambda self, tool=tool: self.check(tool)))


if __name__ == "__main__":
    main()
