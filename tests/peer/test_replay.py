#!/usr/bin/env python3
"""
The same program once recorded by warder and once under strace in the same wall: what the two replay to is
the same.
"""

import json
import os

from peer_help import WALLED, Peer, both_users, main, needs, plain
from run_help import WARDER

SHELL = """
echo a > new; mkdir d; mv new d/; cat d/new ../{out}/o; echo x > ../{out}/no; ln -s ../{out} far; cat far/o far/none
cat far/keep/k; echo x > far/keep/k; rm far/keep/k; mv d far/keep/; mv far/keep/k .
cd d && cat new ../far/keep/k && ln new ../far/keep/new
cd ../../{out}; ls; cat o; mkdir e; ./o; chmod 600 o; (cd / && cat etc/hostname) | wc -l & wait; exec cat o
"""
PYTHON = """
import os, threading
out = os.environ["OUTSIDE"]
def attempt(f, *args, **more):
    try: return f(*args, **more)
    except OSError: return None
d, keep = (os.open(p, os.O_RDONLY | os.O_DIRECTORY) for p in (".", out + "/keep"))
attempt(os.open, "k", os.O_RDWR, dir_fd=keep); attempt(os.open, out, os.O_RDONLY)
attempt(os.rename, "top", "top", src_dir_fd=d, dst_dir_fd=keep); attempt(os.truncate, out + "/o", 0)
def inside():
    os.chdir(out + "/keep"); attempt(open, "k"); attempt(open, "k", "w"); attempt(open, "new", "x"); os.fchdir(d)
t = threading.Thread(target=inside); t.start(); t.join()
if os.fork() == 0:
    os.chdir("/"); attempt(open, out[1:] + "/o"); attempt(os.mkdir, out[1:] + "/dir"); os._exit(0)
os.wait(); attempt(os.symlink, "x", out + "/link"); attempt(os.link, "top", out + "/hard")
"""
SETUP = """
cd "$PROJECT" && echo t > top && cd "$OUTSIDE" && mkdir keep && echo k > keep/k && echo o > o && chmod 755 o
"""
# What lay at a name is not always told by text: whether a refused open was of a directory, whether a name
# that was to be made was there. Policies have one letter for both.
LETTERS = {"read": "r", "list": "r", "exec": "x", "write": "w", "create": "w", "delete": "w", "move": "w", "meta": "w"}


@both_users
@needs("strace")
class Replay(Peer):
    def replayed(self, *args):
        done = self.native(WARDER, "replay", "--json", *args)
        self.assertIn(done.status, (0, 1), done)
        return json.loads(done.out)

    def denials(self, report):
        return {(plain(d["path"]), plain(d.get("path2")), frozenset(LETTERS.get(a, a) for a in d["access"]), d["verdict"])
                for d in report["denials"]}

    def without_the_wall_being_built(self, text):
        """What walled itself did is not the program's, but for the wall."""
        with open(text, encoding="utf-8", errors="surrogateescape") as f:
            lines = f.readlines()
        walled = max(i for i, line in enumerate(lines) if "landlock_restrict_self(" in line)
        start = next(i for i in range(walled, len(lines)) if "execve(" in lines[i])
        kept = [line for line in lines[:start] if any(c in line for c in (" brk(", "landlock_restrict_self("))]
        with open(text, "w", encoding="utf-8", errors="surrogateescape") as f:
            f.writelines(kept + lines[start:])

    def compare_both(self, *argv):
        policy = os.path.join(self.dir, "policy")
        with open(policy, "w", encoding="utf-8") as f:
            f.write(f"allow rwx {self.project}\nallow r {self.outside}/keep\nallow rw /dev/null\n")
        os.chmod(policy, 0o644)
        options = ["--policy", policy, "--tmp", "shared", "--on-denial", "report"]
        ours, text = os.path.join(self.walk[3], "run.jsonl"), os.path.join(self.dir, "text")
        self.afresh(SETUP)
        self.native(WARDER, "record", "-o", ours, *options, "--", *argv, timeout=120, env={**self.env, **self.places()})
        recorded = self.replayed(ours)
        self.afresh(SETUP)
        self.native("strace", "-f", "-y", "-o", text, WALLED, "run", *options[:4], "--", *argv, timeout=120,
                    env={**self.env, **self.places()})
        self.without_the_wall_being_built(text)
        imported = self.replayed("--policy", policy, "--cwd", self.project, text)
        self.assertEqual(imported["replay"]["traces"][0]["faults"], 0)
        self.assertTrue(imported["replay"]["traces"][0]["complete"])
        a, b = self.denials(recorded), self.denials(imported)
        self.assertGreater(len(a), 5, recorded)
        self.assertEqual(a - b, set(), "only warder's trace has these")
        self.assertEqual(b - a, set(), "only strace's text has these")

    def test_a_shell(self):
        self.compare_both("sh", "-c", SHELL.format(out=os.path.basename(self.outside)))

    def test_descriptors_threads_and_children(self):
        self.compare_both("/usr/bin/python3", "-I", "-S", "-c", PYTHON)


if __name__ == "__main__":
    main()
