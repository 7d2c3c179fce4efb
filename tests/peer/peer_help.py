"""
The same program three times from the same start: under warder, in the same wall under strace, and
under strace with no wall at all. What the wall refused, and nothing else, is what warder says.
"""

import json
import os
import re
import shutil
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "live"))

from run_help import RunCase, both_users, deny, main, remove_tree  # noqa: E402,F401
import strace_help  # noqa: E402

# For the programs, and for finding out whether they are there.
PATH = "/usr/bin:/bin"

SYSTEM = ["--no-presets", "-x", "/usr", "-r", "/etc", "-r", "/proc", "--rule", "allow read,write,ioctl /dev/null"]
OPEN = [*SYSTEM, "--rule", "allow rwx ."]
READ_ONLY = [*SYSTEM, "-x", "."]

TREE = """
cd "$PROJECT" && mkdir -p tree/a/b tree/c && echo one > tree/a/one && echo two > tree/a/b/two
ln -s ../a/one tree/c/link && ln -s "$OUTSIDE/o" tree/c/far && chmod 640 tree/a/one
mkdir tree/closed && echo x > tree/closed/x && chmod 0 tree/closed
cd "$OUTSIDE" && mkdir -p d/e && echo three > o && echo four > d/f && echo five > d/e/g
"""

WALLED = os.path.realpath(os.environ["WALLED"])
HERE = os.path.dirname(os.path.abspath(__file__))

# Read keys, one JSON array a line; say of each what the file permissions say.
MAY = """
import json, os, stat, sys
def may(path, mode): return os.access(path, mode, effective_ids=True)
def may_change(path): return may(os.path.dirname(path), os.W_OK | os.X_OK)
def may_remove(path):
    d = os.stat(os.path.dirname(path))
    return not d.st_mode & stat.S_ISVTX or os.getuid() in (0, d.st_uid, os.lstat(path).st_uid)
def is_full(path): return os.path.isdir(path) and not os.path.islink(path) and os.listdir(path)
def say(path, path2, access):
    if path2:
        return may_change(path) and may_change(path2)
    if "exec" in access:
        return os.path.isfile(path) and may(path, os.X_OK)
    if access & {"read", "write", "list"} and os.path.exists(path):
        return may(path, os.R_OK * bool(access & {"read", "list"}) | os.W_OK * ("write" in access))
    if access == {"delete"} and is_full(path):
        return None
    return may_change(path) and (access != {"delete"} or may_remove(path))
for line in sys.stdin:
    path, path2, access = json.loads(line)
    print({True: "ok", False: "permissions", None: "anyway"}[say(path, path2, set(access))])
"""

# Names that programs draw by lot, and numbers of processes.
DRAWN = [
    (re.compile(r"^/proc/\d+"), "/proc/PID"),
    (re.compile(r"/(tmp_obj_|cc|tmp\.?|sh-thd\.|sed|rustc|go-build|perl|_cacache/tmp/)[A-Za-z0-9_]{6,}\b"), r"/\1*"),
]


def needs(*programs):
    missing = [p for p in programs if not shutil.which(p, path=PATH)]
    return unittest.skipIf(missing, "not installed: " + " ".join(missing))


def plain(path):
    """The path without what is another in each run."""
    if path is None:
        return None
    for pattern, text in DRAWN:
        path = pattern.sub(text, path)
    return path


def resolved(call, i):
    """The path that a failed call reached, as warder names it."""
    path = re.sub(r"^/proc/(self|thread-self)(?=/|$)", f"/proc/{call.pid}", call.paths[i])
    flags = call.flags()
    follows = call.name in ("execve", "execveat", "truncate", "open", "openat", "openat2", "creat")
    if "O_NOFOLLOW" in flags or ("O_CREAT" in flags and "O_EXCL" in flags):
        follows = False
    if call.name == "linkat" and i == 0 and "AT_SYMLINK_FOLLOW" in flags:
        follows = True
    if path.startswith("/proc/"):
        return path
    trimmed = path.rstrip("/") or "/"
    if follows or trimmed == "/" or os.path.basename(trimmed) in (".", ".."):
        return os.path.realpath(trimmed)
    return os.path.join(os.path.realpath(os.path.dirname(trimmed)), os.path.basename(trimmed))


def accesses(call, path):
    """The accesses that a call with one path needs, as docs/accesses.md has them."""
    name, flags = call.name, call.flags()
    if name in ("open", "openat", "openat2", "creat"):
        need = {"read"} if "O_RDONLY" in flags else {"write"} if "O_WRONLY" in flags else {"read", "write"}
        if "O_TMPFILE" in flags:
            return need | {"create"}
        if os.path.isdir(path):
            return {"list"}
        if not os.path.lexists(path):
            return need | ({"create"} if "O_CREAT" in flags else set())
        if "O_TRUNC" in flags and os.path.isfile(path):
            need.add("write")
        if {"O_CREAT", "O_EXCL"} <= flags:
            need.add("create")
        return need
    if name in ("execve", "execveat"):
        return {"read", "exec"}
    if name == "truncate":
        return {"write"}
    if name in ("unlink", "unlinkat", "rmdir"):
        return {"delete"}
    return {"create"}


def key_of(paths, access):
    """(path, path2, accesses): what refusals are folded by. Of two paths either can be the first."""
    return (*sorted(paths), None) if len(paths) == 2 else (paths[0], None, frozenset(access))


def key_of_record(record):
    """Of a denial in the report, or of a question."""
    return key_of([record["path"], *([record["path2"]] if "path2" in record else [])], record["access"])


class Refused:
    """One kind of refusal: where, what for, in which calls, how often, and what the policy says."""

    def __init__(self):
        self.count, self.calls, self.effect = 0, set(), "ask"

    def add(self, call, errno, count=1):
        self.count += count
        self.calls.add((call, errno))


def is_within(path, top):
    return path == top or path.startswith(top.rstrip("/") + "/")


def without_accesses(kinds):
    """Whom a directory's mode keeps out can't say what kind of thing was meant in it."""
    merged = {}
    for (path, path2, _), refused in kinds.items():
        into = merged.setdefault((path, path2, None), Refused())
        into.count += refused.count
        into.calls |= refused.calls
    return merged


class Peer(RunCase):
    """run_help's directories, and beside them what a program starts with, made anew for each run."""

    def setUp(self):
        super().setUp()
        self.env["PATH"] = PATH
        self.env.update({f"GIT_{who}_{what}": "x@y" if what == "EMAIL" else "x"
                         for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")})
        self.walk = [self.home, self.project, self.outside, self.tmp]

    def afresh(self, setup):
        for top in self.walk:
            for name in os.listdir(top):
                path = os.path.join(top, name)
                if os.path.isdir(path) and not os.path.islink(path):
                    remove_tree(path)
                else:
                    os.unlink(path)
        if setup:
            done = self.native("sh", "-ec", setup, timeout=120, env={**self.env, **self.places()})
            self.assertStatus(done)

    def places(self):
        return {"OUTSIDE": self.outside, "PROJECT": self.project, "SUPPORT": HERE}

    # ---- the three runs ----

    def trace(self, argv, after):
        out = os.path.join(self.dir, "trace")
        done = self.native(*strace_help.command(out, *argv), timeout=120)
        trace = strace_help.Trace(out, self.project, after=after)
        os.unlink(out)
        return done, trace

    def kinds_of(self, failures):
        """{(path, path2, accesses): Refused} of strace's failures."""
        kinds = {}
        for f in failures:
            paths = [resolved(f, i) for i in range(len(f.paths))]
            key = key_of(paths, accesses(f, paths[0]))
            kinds.setdefault(key, Refused()).add(f.name, f.errno)
        return kinds

    def decide(self, options, wanted):
        """The policy's effect for each (access, path)."""
        text = "".join(f"{access} {path}\0" for access, path in wanted)
        done = self.native(WALLED, "decide", *options, input=text)
        self.assertStatus(done)
        return done.out.split()

    def not_allowed(self, options, kinds):
        """
        Of strace's kinds those that the policy does not allow, each with the accesses that it does not
        allow; and what it does allow.
        """
        wanted = [(a, path) for path, path2, access in kinds for path in filter(None, (path, path2))
                  for a in sorted(access or ("create", "delete"))]
        effect = dict(zip(wanted, self.decide(options, wanted)))
        left, allowed = {}, []
        for (path, path2, access), refused in kinds.items():
            effects = {effect[a, p] for p in filter(None, (path, path2)) for a in access or ("create", "delete")}
            asked = access and frozenset(a for a in access if effect[a, path] != "allow")
            if effects == {"allow"} and access:
                allowed.append((path, path2, access))
                continue
            into = left.setdefault((path, path2, asked), Refused())
            into.count += refused.count
            into.calls |= refused.calls
            # A move that both names allow is refused where it would open the thing to more.
            into.effect = next((e for e in ("forbid", "deny") if e in effects), "ask")
        return left, allowed

    def without_wall(self, keys):
        """
        Would the call fail for this user with no sandbox? Asked of the kernel, in a process of the
        user's, for each: "ok", "permissions", or "anyway" for another error.
        """
        lines = [json.dumps([path, path2, sorted(access or ["move"])]) for path, path2, access in keys]
        done = self.native("/usr/bin/python3", "-I", "-c", MAY, input="".join(f"{line}\n" for line in lines))
        self.assertStatus(done)
        words = done.out.split()
        self.assertEqual(len(keys), len(words), done)
        return dict(zip(keys, words))

    # ---- together ----

    def report_kinds(self, report, verdicts):
        kinds = {}
        for d in report["denials"]:
            if d["verdict"] not in verdicts or d["call"] not in strace_help.CALLS:
                continue
            kinds.setdefault(key_of_record(d), Refused()).add(d["call"], d["errno"], d["count"])
        return kinds

    def names(self, kinds):
        out = {}
        for (path, path2, access), refused in kinds.items():
            into = out.setdefault((plain(path), plain(path2), access), Refused())
            into.count += refused.count
            into.calls |= refused.calls
            into.effect = refused.effect
        return out

    def split(self, walled, native):
        """Of strace's failures in the wall: (the sandbox's, the file permissions')."""
        bare = self.names(self.kinds_of(native.failures))
        kinds = self.kinds_of(walled.failures)
        may = self.without_wall(list(kinds))
        sandbox, other = {}, {}
        for key, refused in kinds.items():
            name = (plain(key[0]), plain(key[1]), key[2])
            why = "permissions" if name in bare else may[key]
            if why != "anyway":
                (sandbox if why == "ok" else other)[key] = refused
        return sandbox, without_accesses(other)

    def run_in_wall(self, how, options, argv, setup):
        self.afresh(setup)
        return self.trace([WALLED, how, *options, "--", *argv], after=2)

    def expected(self, how, options, argv, setup):
        """What the wall refuses by strace's word, and what the policy allows all the same."""
        self.afresh(setup)
        _, native = self.trace(argv, after=1)
        walled, trace = self.run_in_wall(how, options, argv, setup)
        self.assertGreater(trace.calls, 0, walled)
        sandbox, other = self.split(trace, native)
        refused, allowed = self.not_allowed(options, sandbox)
        return walled, self.names(refused), self.names(other), allowed

    def told(self, kinds):
        return "".join(f"\n  {'+'.join(sorted(k[2])) if k[2] else 'move'} {k[0]} {k[1] or ''} "
                       f"{v.count}x {sorted(v.calls)}" for k, v in sorted(kinds.items(), key=str))

    def assertSameKinds(self, witness, ours, what, excepted=()):
        missed = {k: v for k, v in witness.items() if k not in ours}
        invented = {k: v for k, v in ours.items()
                    if k not in witness and not k[0].startswith(tuple(excepted))}
        if missed or invented:
            self.fail(f"{what}\nmissed:{self.told(missed)}\ninvented:{self.told(invented)}")
        for key in set(ours) & set(witness):
            self.assertLessEqual(ours[key].calls, witness[key].calls, f"{what}: {key}")
            self.assertEqual(witness[key].count, ours[key].count, f"{what}: how often {key}")

    def compare(self, options, script, setup="", how="run", excepted=(), output=True):
        """
        The script under sh. how: "run" where Landlock's words alone can say the policy: then nothing is
        brokered, and the two runs are the same in everything. "loose" where the broker has to do a
        part: strace's wall then grants that natively, the exceptions with it; what warder refuses below
        `excepted` strace can't have seen.
        """
        options = ["--tmp", "shared", *options]
        argv = ["sh", "-c", script]
        walled, refused, other, allowed = self.expected(how, options, argv, setup)
        self.assertTrue(refused, "the wall refused too little to prove anything")
        self.assertEqual([], allowed, "the ruleset lacks what the policy allows")
        done = self.report_of(options, argv, setup)
        self.assertEqual(walled.status, done.status, f"{walled}\n{done}")
        self.assertEqual(how == "loose", done.report["engine"]["brokered"] > 0, done)
        self.assertSameKinds(refused, self.names(self.report_kinds(done.report, ("sandbox",))),
                             "refused by the sandbox", excepted)
        self.assertSameKinds(other, self.names(without_accesses(self.report_kinds(
            done.report, ("permissions", "cross-device", "other")))), "refused by others")
        if output:
            # A directory that may not be moved is told what makes an honest program copy it.
            self.assertEqual(plain_text(walled.out).replace("dir out: EACCES", "dir out: EXDEV"),
                             plain_text(done.out))
            self.assertEqual(plain_text(walled.err), plain_text(done.err))
        self.assertAsked(refused, done.report, excepted, options, argv, setup)

    def assertAsked(self, refused, report, excepted, options, argv, setup):
        """
        What waits for an answer is what the policy asks about, and every such refusal is a question.
        What an earlier no is about as well is not asked again.
        """
        open_ones = {key_of_record(d) for d in report["denials"]
                     if d["verdict"] == "sandbox" and d["by"] == "none" and d["call"] in strace_help.CALLS}
        open_ones = {key for key in self.names({key: Refused() for key in open_ones})
                     if not key[0].startswith(tuple(excepted))}
        for key, of in refused.items():
            if not key[1]:
                self.assertEqual(of.effect == "ask", key in open_ones, f"{key}: the policy says {of.effect}")
        asked, directories = self.asked_of(options, argv, setup)
        asked = {key for key in asked if not key[0].startswith(tuple(excepted))}
        self.assertEqual(set(), asked - open_ones, "asked without need")
        heard = directories | {path for key in asked for path in key[:2] if path}
        for key in open_ones - asked:
            self.assertTrue([p for p in key[:2] if p and any(is_within(p, h) or is_within(h, p) for h in heard)],
                            f"not asked: {key}")

    def report_of(self, options, argv, setup):
        self.afresh(setup)
        return self.run_report(*options, "--on-denial", "report", "-q", "--", *argv, timeout=120)

    def asked_of(self, options, argv, setup):
        """What is asked where every answer is no, and the directories that such a no was about."""
        self.afresh(setup)
        done = self.hold(*options, "-q", "--", *argv, answer=deny, timeout=120)
        keys = {key_of_record(q): Refused() for q in done.asked if q["call"] in strace_help.CALLS}
        return set(self.names(keys)), {q["below"] for q in done.asked if "below" in q}


def plain_text(text):
    for pattern, replacement in DRAWN[1:]:
        text = pattern.sub(replacement, text)
    return re.sub(r"\b\d+(\.\d+)?( ?m?s\b| bytes/sec)|\b[0-9a-f]{7,40}\b|\[\d+\] \d+", "N", text)
