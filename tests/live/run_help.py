"""
What the tests of `warder run` share: a directory of its own for each test, both users, runs with a
time limit, and a peer that answers questions over --events/--answers.
"""

import contextlib
import json
import os
import select
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../slow"))
import told  # noqa: E402

WARDER = os.path.realpath(os.environ["WARDER"])
FIXTURES = os.path.realpath(os.environ["FIXTURES"])
NOBODY = 65534
TIMEOUT = 30
# On an emulated machine all takes longer: so many times as long.
SLOW = int(os.environ.get("WARDER_SLOW", "1"))
# ./dev test --slow: a test's reports are kept here, for tests/slow/both.py to compare.
TOLD = os.environ.get("TOLD")
STORM_CALLS = 3000 // SLOW
STORM = (str(200 * SLOW), str(STORM_CALLS))  # fixtures/storm.c: microseconds between two signals, and calls


def both_users(cls):
    """The class as it is, and once more as an ordinary user where we are root."""
    if os.getuid() == 0:
        name = cls.__name__ + "_AsNobody"
        other = type(name, (cls,), {"uid": NOBODY, "__module__": cls.__module__})
        setattr(sys.modules[cls.__module__], name, other)
    return cls


def remove_tree(path):
    """All of it, whatever modes its directories have: an ordinary user may have shut itself out."""
    for _, dirs, _, at in os.fwalk(path):  # by descriptors: a path may be longer than PATH_MAX
        for name in dirs:
            with contextlib.suppress(FileNotFoundError):  # who is ending may be clearing up, too
                mode = os.stat(name, dir_fd=at, follow_symlinks=False).st_mode
                if stat.S_ISDIR(mode) and not os.access(name, os.R_OK | os.W_OK | os.X_OK, dir_fd=at):
                    os.chmod(name, stat.S_IRWXU, dir_fd=at)
    shutil.rmtree(path)


def fixture(name):
    return os.path.join(FIXTURES, name)


# Calls that younger machines were never given, and what a C library makes there in their place.
SUCCESSORS = {"open": "openat", "creat": "openat", "mkdir": "mkdirat", "mknod": "mknodat", "symlink": "symlinkat",
              "link": "linkat", "unlink": "unlinkat", "rmdir": "unlinkat", "rename": "renameat", "chmod": "fchmodat",
              "chown": "fchownat", "lchown": "fchownat", "utimes": "utimensat"}


def call_here(name):
    """The name under which this machine makes such a call."""
    return SUCCESSORS.get(name, name) if os.uname().machine == "aarch64" else name


def needs(*programs):
    missing = [p for p in programs if not shutil.which(p)]
    return unittest.skipIf(missing, "not installed: " + " ".join(missing))


def by_chance(test):
    """What is refused there is another thing each time, for a race or a kill decides: not to be compared."""
    test.told = None
    return test


def counts_by_chance(test):
    """How often something is refused there is another number each time: compared without."""
    test.told = "uncounted"
    return test


def wait_until(true, seconds=10):
    """Does it become true?"""
    end = time.monotonic() + seconds * SLOW
    while time.monotonic() < end:
        if true():
            return True
        time.sleep(0.01)
    return bool(true())


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def allow(lifetime="once", scope=0):
    """An answerer: yes to everything."""
    return lambda q: {"answer": "allow", "scope": scope, "lifetime": lifetime}


def deny(q):
    return {"answer": "deny"}


def scope_of(q, path, kind):
    """The number of the scope a question offers."""
    for i, s in enumerate(q["scopes"]):
        if s["path"] == path and s["kind"] == kind:
            return i
    raise AssertionError(f"no {kind} scope of {path} in {q['scopes']}")


class Done:
    """A run that ended. status is negative where a signal ended it."""

    def __init__(self, status, out, err, report, events=()):
        self.status, self.out, self.err, self.report = status, out, err, report
        self.events = list(events)
        self.asked = [e for e in self.events if e["event"] == "ask"]

    def denials(self, path=None, **fields):
        found = []
        for d in self.report["denials"]:
            if path is not None and d["path"] != path:
                continue
            if all(d.get(k) == v for k, v in fields.items()):
                found.append(d)
        return found

    def __str__(self):
        denials = self.report and json.dumps(self.report["denials"], indent=1)
        return (f"\nstatus {self.status}\nstdout: {self.out[-3000:]}\nstderr: {self.err[-3000:]}"
                f"\nevents: {json.dumps(self.events)[-3000:]}\ndenials: {denials}")


class Talk:
    """A run whose questions this process answers."""

    def __init__(self, case, args, **more):
        events, events_there = os.pipe()
        answers_there, answers = os.pipe()
        self.case, self.events_fd, self.answers_fd = case, events, answers
        self.events, self.rest = [], b""
        self.files = [open(os.path.join(case.dir, n), "w+b") for n in ("stdout", "stderr")]
        case.addCleanup(self.close)
        self.process = case.start(
            [WARDER, "run", "--report", case.report_file, "--events", str(events_there),
             "--answers", str(answers_there), *args],
            stdout=self.files[0], stderr=self.files[1],
            pass_fds=(events_there, answers_there, *more.pop("pass_fds", ())), **more)
        os.close(events_there)
        os.close(answers_there)

    def close(self):
        for fd in (self.events_fd, self.answers_fd):
            if fd >= 0:
                os.close(fd)
        self.events_fd = self.answers_fd = -1
        for f in self.files:
            f.close()

    def next(self, *kinds, seconds=TIMEOUT):
        """The next event (of these kinds); None at the end."""
        end = time.monotonic() + seconds * SLOW
        while True:
            line, newline, rest = self.rest.partition(b"\n")
            if newline:
                self.rest = rest
                event = json.loads(line)
                self.events.append(event)
                if not kinds or event["event"] in kinds:
                    return event
                continue
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.events_fd], [], [], left)[0]:
                raise AssertionError(f"no {kinds} event came; so far: {self.events}")
            more = os.read(self.events_fd, 65536)
            if not more:
                return None
            self.rest += more

    def ask(self, seconds=TIMEOUT):
        q = self.next("ask", seconds=seconds)
        if q is None:
            raise AssertionError(f"it ended and nothing was asked: {self.finish()}")
        return q

    def is_quiet(self, seconds):
        """Does nothing arrive for so long?"""
        return not self.rest and not select.select([self.events_fd], [], [], seconds)[0]

    def send(self, text):
        os.write(self.answers_fd, text.encode())

    def answer(self, q, **words):
        self.send(json.dumps({"id": q["id"], **words}) + "\n")

    def hang_up(self):
        os.close(self.answers_fd)
        self.answers_fd = -1

    def finish(self, seconds=TIMEOUT):
        while self.next(seconds=seconds):
            pass
        status = self.process.wait(timeout=seconds * SLOW)
        texts = []
        for f in self.files:
            f.seek(0)
            texts.append(f.read().decode("utf-8", "surrogateescape"))
        return Done(status, *texts, self.case.read_report(), self.events)


class RunCase(unittest.TestCase):
    """One directory a test: home, project (the cwd), outside (never allowed), tmp, bin."""

    uid = os.getuid()
    maxDiff = None

    def setUp(self):
        self.dir = os.path.realpath(tempfile.mkdtemp(prefix="warder-run-"))
        self.addCleanup(self.remove)
        os.chmod(self.dir, 0o755)
        for name in ("home", "project", "outside", "tmp", "bin"):
            path = os.path.join(self.dir, name)
            os.mkdir(path)
            setattr(self, name, path)
            self.own(path)
        self.own(self.dir)
        self.report_file = os.path.join(self.dir, "report.json")
        self.env = {
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
            "HOME": self.home,
            "XDG_CONFIG_HOME": os.path.join(self.dir, "config"),
            "XDG_STATE_HOME": os.path.join(self.dir, "state"),
            "TMPDIR": self.tmp,
            "LC_ALL": "C.UTF-8",
        }
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS"):
            if name in os.environ:
                self.env[name] = os.environ[name]

    def remove(self):
        remove_tree(self.dir)

    def own(self, path):
        """Give it to the user that this test runs as."""
        if self.uid != os.getuid():
            os.chown(path, self.uid, self.uid, follow_symlinks=False)
        return path

    def write(self, path, text="", mode=0o644):
        """A file of the test's user; the path is relative to the test's directory."""
        path = os.path.join(self.dir, path)
        here = os.path.dirname(path)
        missing = []
        while not os.path.exists(here):
            missing.append(here)
            here = os.path.dirname(here)
        for directory in reversed(missing):
            os.mkdir(directory)
            self.own(directory)
        with open(path, "w", encoding="utf-8", errors="surrogateescape") as f:
            f.write(text)
        os.chmod(path, mode)
        return self.own(path)

    def read(self, path):
        with open(os.path.join(self.dir, path), encoding="utf-8", errors="surrogateescape") as f:
            return f.read()

    def as_user(self):
        if self.uid == os.getuid():
            return {}
        return {"user": self.uid, "group": self.uid, "extra_groups": []}

    def start(self, argv, **more):
        """A process of the test's user, in a session without a terminal; killed at the latest at the end."""
        more.setdefault("cwd", self.project)
        more.setdefault("env", self.env)
        more.setdefault("stdin", subprocess.DEVNULL)
        more.setdefault("start_new_session", True)
        process = subprocess.Popen(argv, **self.as_user(), **more)
        self.addCleanup(self.end, process)
        return process

    def end(self, process):
        if process.poll() is None:
            process.kill()
            process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe and not pipe.closed:
                pipe.close()

    def read_report(self):
        try:
            with open(self.report_file, encoding="utf-8") as f:
                text = f.read()
        except FileNotFoundError:
            return None
        report = json.loads(text) if text else None
        how = getattr(getattr(self, self._testMethodName), "told", "counted")
        if report and how and TOLD:
            told.keep(TOLD, self.id(), report, self.dir, how == "counted")
        return report

    def native(self, *argv, input=None, timeout=TIMEOUT, **more):
        """Without warder."""
        if input is not None:
            more["stdin"] = subprocess.PIPE
        p = self.start(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)
        try:
            out, err = p.communicate(input.encode() if input is not None else None, timeout * SLOW)
        except subprocess.TimeoutExpired:
            p.kill()
            out, err = p.communicate()
            self.fail(f"{argv} did not end in {timeout * SLOW} s\n{out!r}\n{err!r}")
        return Done(p.returncode, out.decode("utf-8", "surrogateescape"),
                    err.decode("utf-8", "surrogateescape"), None)

    def run_plain(self, *args, **more):
        """warder run ARGS with nothing of ours added."""
        return self.native(WARDER, "run", *args, **more)

    def run_report(self, *args, **more):
        """warder run ARGS with nobody to ask, and its report."""
        if os.path.exists(self.report_file):
            os.unlink(self.report_file)
        done = self.run_plain("--report", self.report_file, *args, **more)
        done.report = self.read_report()
        return done

    def hold(self, *args, answer=None, timeout=TIMEOUT, **more):
        """warder run ARGS; each question is answered by answer(question) (default: once)."""
        answer = answer or allow()
        talk = Talk(self, args, **more)
        end = time.monotonic() + timeout * SLOW
        while True:
            q = talk.next("ask", seconds=max(end - time.monotonic(), 0))
            if q is None:
                return talk.finish()
            words = answer(q)
            if words is not None:
                talk.answer(q, **words)

    def assertStatus(self, done, status=0):
        if done.status != status:
            self.fail(f"status {done.status}, not {status}{done}")

    def assertNothingAsked(self, done):
        self.assertEqual([], done.asked, done)

    def assertQuiet(self, done):
        """Nothing of warder's on stderr."""
        self.assertNotIn("warder:", done.err)

    def children_of(self, process):
        """The pids of its children, once there are some."""
        def children():
            with open(f"/proc/{process.pid}/task/{process.pid}/children") as f:
                return [int(p) for p in f.read().split()]
        self.assertTrue(wait_until(children), "it has no children")
        return children()


def main():
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    unittest.main(verbosity=2)
