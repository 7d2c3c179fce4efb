"""
Other projects' test programs, from Debian's source packages: fetched when a test runs, kept in the
build directory, never in this repository. Each is run natively and under warder with everything
allowed, and is to notice nothing.
"""

import contextlib
import difflib
import fcntl
import glob
import os
import re
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "live"))

from run_help import NOBODY, WARDER, RunCase  # noqa: E402

CACHE = os.path.realpath(os.environ["PEER_SOURCES"])
KERNELS = ("linux-source-6.1", "linux-source-6.12")
MODES = {"allowed": ["--no-presets", "--rule", "allow /"]}
if "--permissive" in subprocess.run([WARDER, "run", "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout:
    MODES["permissive"] = ["--permissive"]


class Missing(Exception):
    """Why the sources can't be had."""


def command(*argv, cwd=CACHE, timeout=900):
    try:
        done = subprocess.run(argv, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=timeout, check=False)
    except (FileNotFoundError, subprocess.TimeoutExpired) as e:
        raise Missing(str(e)) from e
    if done.returncode:
        raise Missing(f"{' '.join(argv)}: {done.stdout.decode(errors='replace')[-500:]}")
    return done.stdout.decode(errors="replace")


@contextlib.contextmanager
def made_once(name):
    """The directory of one source in the cache, and whether it is still to be filled."""
    os.makedirs(CACHE, exist_ok=True)
    with open(os.path.join(CACHE, "lock"), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        where, ready = os.path.join(CACHE, name), os.path.join(CACHE, name + ".ready")
        if os.path.exists(ready):
            yield where, False
            return
        shutil.rmtree(where, ignore_errors=True)
        os.makedirs(where)
        yield where, True
        with open(ready, "w", encoding="ascii"):
            pass


def debian_sources(file):
    """apt's configured Debian mirrors as a list of sources of its own, for source packages."""
    text = ""
    for name in sorted(glob.glob("/etc/apt/sources.list") + glob.glob("/etc/apt/sources.list.d/*")):
        with open(name, encoding="utf-8") as f:
            kept = f.read()
        if name.endswith(".sources"):
            for stanza in re.split(r"\n\s*\n", kept):
                if re.search(r"^URIs:.*\bdebian\.org\b", stanza, re.M):
                    text += re.sub(r"^Types:.*$", "Types: deb-src", stanza, flags=re.M) + "\n\n"
        else:
            for line in kept.splitlines():
                if re.match(r"deb\s.*\bdebian\.org\b", line):
                    words = re.match(r"deb\s+(\[([^]]*)\]\s+)?(\S+)\s+(\S+)\s+(.*)", line)
                    text += (f"Types: deb-src\nURIs: {words[3]}\nSuites: {words[4]}\nComponents: {words[5]}\n")
                    signed = re.search(r"signed-by=(\S+)", words[2] or "")
                    text += f"Signed-By: {signed[1]}\n\n" if signed else "\n"
    if not text:
        raise Missing("apt has no Debian mirror configured")
    with open(file, "w", encoding="utf-8") as f:
        f.write(text)


def own_apt(where):
    """Options of apt-get for lists of our own, from mirrors.sources in that directory."""
    for name in ("lists/partial", "cache/archives/partial"):
        os.makedirs(os.path.join(where, name))
    own = ["-o", f"Dir::Etc::sourcelist={where}/mirrors.sources", "-o", "Dir::Etc::sourceparts=-",
           "-o", f"Dir::State::lists={where}/lists", "-o", f"Dir::Cache={where}/cache"]
    command("apt-get", "-qq", *own, "update")
    return own


NEWER = "trixie"
NEWER_LIBC = "libc6"


def newer_libc():
    """The C library of a newer Debian, unpacked: its directory."""
    with made_once("libc") as (where, new):
        if new:
            debian_sources(where + "/mirrors.sources")
            with open(where + "/mirrors.sources", encoding="utf-8") as f:
                mirror = re.search(r"^URIs: (\S+/debian)/?$", f.read(), re.M)
            if not mirror:
                raise Missing("apt has no mirror of Debian itself configured")
            with open(where + "/mirrors.sources", "w", encoding="utf-8") as f:
                f.write(f"Types: deb\nURIs: {mirror[1]}\nSuites: {NEWER}\nComponents: main\n"
                        "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n")
            command("apt-get", "-qq", *own_apt(where), "download", NEWER_LIBC, cwd=where)
            command("dpkg-deb", "-x", glob.glob(where + "/libc6_*.deb")[0], where + "/deb")
        return os.path.join(where, "deb/usr/lib/x86_64-linux-gnu")


def kernel():
    """The kernel's selftests: their directory."""
    with made_once("linux") as (where, new):
        if new:
            name = next((k for k in KERNELS if "Candidate: (none)" not in command("apt-cache", "policy", k)
                         and command("apt-cache", "policy", k)), None)
            if not name:
                raise Missing("apt knows none of " + " ".join(KERNELS))
            command("apt-get", "-qq", "download", name, cwd=where)
            deb = glob.glob(os.path.join(where, "*.deb"))[0]
            command("dpkg-deb", "-x", deb, where + "/deb")
            command("tar", "xf", glob.glob(where + "/deb/usr/src/*.tar.xz")[0], "--strip-components=1", "--wildcards",
                    "*/tools/testing/selftests/*", "*/tools/include/*", cwd=where)
            os.unlink(deb)
            shutil.rmtree(where + "/deb")
        return os.path.join(where, "tools/testing/selftests")


def strace_tests(programs):
    """strace's own tracees: the directory in which these are built."""
    with made_once("strace") as (where, new):
        top = os.path.join(where, "src")
        if new:
            debian_sources(where + "/mirrors.sources")
            own = own_apt(where)
            command("apt-get", "-qq", *own, "--download-only", "source", "strace", cwd=where)
            os.makedirs(top)
            command("tar", "xf", glob.glob(where + "/strace_*.orig.tar.xz")[0], "--strip-components=1", "-C", top)
            command("./configure", "-q", "--enable-bundled=yes", "--enable-mpers=no", "--enable-gcc-Werror=no", cwd=top)
            command("make", "-s", "-C", "src", "scno.h", cwd=top)
        command("make", "-s", "-k", "-j2", "libtests.a", *programs, cwd=top + "/tests")
        return os.path.join(top, "tests")


def fetched(get, *args):
    """What get gives, or the test is skipped with the reason that it can't be had."""
    try:
        return get(*args)
    except Missing as e:
        raise unittest.SkipTest(f"the sources can't be had: {e}") from e


# ---- what may differ from one run to the next ----

def plain(text):
    text = re.sub(r"0x[0-9a-f]+|\b[0-9a-f]{8,16}\b", "N", text)
    text = re.sub(r"warder-run-\w+|testdir\.\w{6}|/proc/\d+", "N", text)
    return re.sub(r"\d+", "N", text)


def verdicts(out):
    """{test: passed} of TAP output; None where it is none."""
    found = re.findall(r"^(ok|not ok) (\d+)\b(.*)$", out, re.M)
    return {f"{n}{name}": word == "ok" for word, n, name in found} or None


class Difference:
    """
    What can't be as natively, and why: the status under warder (None: as natively), a pattern that the
    output has, the TAP tests that end otherwise (None: not compared), and in which modes.
    """

    def __init__(self, why, status, pattern, failing=None, modes=("allowed", "permissive")):
        self.why, self.status, self.pattern, self.failing, self.modes = why, status, pattern, failing, modes


class Program(RunCase):
    """Natively and under warder: the same end, the same words."""

    uid = NOBODY if os.getuid() == 0 else os.getuid()
    seconds = 30

    def in_own_place(self, argv, files):
        """In a fresh directory with these files; its output is one stream, in order."""
        for name in os.listdir(self.project):
            path = os.path.join(self.project, name)
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path)
            else:
                os.unlink(path)
        for file in files:
            self.own(shutil.copy(file, self.project))
        return self.native("timeout", "-k", "2", str(self.seconds), "sh", "-c", 'exec "$@" 2>&1', "sh", *argv,
                           timeout=2 * self.seconds)

    def compare(self, argv, files=(), differs=()):
        """differs: the Differences that are expected of this program."""
        native = self.in_own_place(argv, files)
        self.assertNotIn(native.status, (124, 137), f"natively it did not end{native}")
        for mode, options in MODES.items():
            with self.subTest(f"{os.path.basename(argv[0])}: {mode}"):
                done = self.in_own_place(
                    [WARDER, "run", *options, "--on-denial", "report", "-q", "--tmp", "shared",
                     "--leftovers", "wait", "--", *argv], files)
                expected = [d for d in differs if mode in d.modes]
                if expected:
                    self.check_difference(native, done, expected[0])
                else:
                    self.assertEqual(native.status, done.status, self.difference(native, done))
                    if plain(native.out) != plain(done.out):
                        self.fail(self.difference(native, done))

    def check_difference(self, native, done, expected):
        self.assertRegex(done.out, expected.pattern)
        status = native.status if expected.status is None else expected.status
        self.assertEqual(status, done.status, self.difference(native, done))
        if expected.failing is not None:
            before, now = verdicts(native.out), verdicts(done.out)
            self.assertEqual(set(before), set(now))
            other = {name for name in before if before[name] != now[name]}
            self.assertEqual(set(expected.failing), {re.sub(r"^\d+ ", "", name) for name in other})

    def difference(self, native, done):
        lines = difflib.unified_diff(plain(native.out).splitlines(), plain(done.out).splitlines(),
                                     "natively", "under warder", lineterm="", n=0)
        return f"status {native.status} and {done.status}\n" + "\n".join(list(lines)[:40])
