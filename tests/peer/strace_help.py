"""
strace as a witness: which calls with a path failed, on which path, in a whole tree of processes.

The text is that of `strace -f -y -xx`: every string in hexadecimal, so that no name can be taken for
syntax. Calls that were interrupted by another process's line are put together again; the working
directory of each process is followed through chdir, fchdir and fork, and checked against what -y
says of AT_FDCWD.
"""

import os
import re

# Every call that Landlock can refuse by path: (name, [(dirfd argument or None, path argument)]).
CALLS = {
    "open": [(None, 0)], "creat": [(None, 0)], "openat": [(0, 1)], "openat2": [(0, 1)],
    "execve": [(None, 0)], "execveat": [(0, 1)], "truncate": [(None, 0)],
    "mkdir": [(None, 0)], "mkdirat": [(0, 1)], "mknod": [(None, 0)], "mknodat": [(0, 1)],
    "symlink": [(None, 1)], "symlinkat": [(1, 2)], "bind": [(None, 1)],
    "unlink": [(None, 0)], "unlinkat": [(0, 1)], "rmdir": [(None, 0)],
    "rename": [(None, 0), (None, 1)], "renameat": [(0, 1), (2, 3)], "renameat2": [(0, 1), (2, 3)],
    "link": [(None, 0), (None, 1)], "linkat": [(0, 1), (2, 3)],
}
FORKS = ("clone", "clone3", "fork", "vfork")
WATCHED = (*CALLS, *FORKS, "chdir", "fchdir")

LINE = re.compile(r"^(\d+) +(.*)$")
CALL = re.compile(r"^(\w+)\((.*)\) += (-?\d+|\?)(?:<[^>]*>)?(?: (E[A-Z0-9]+))?.*$")
UNFINISHED = re.compile(r"^(.*?)(?: |, )?<unfinished \.\.\.>$")
RESUMED = re.compile(r"^<\.\.\. \w+ resumed>(.*)$")
HEX = re.compile(r"\\x([0-9a-f]{2})")


def command(out, *argv):
    """The command line that writes such a trace of argv to the file out."""
    return ["strace", "-f", "-qq", "-y", "-xx", "-s", "4096", "--seccomp-bpf", "-e", "signal=none",
            "-e", "trace=" + ",".join(WATCHED), "-o", out, *argv]


def unhex(text):
    return bytes.fromhex("".join(HEX.findall(text))).decode("utf-8", "surrogateescape")


def split_arguments(text):
    """At the commas that are in no bracket: with -xx there are no others to be afraid of."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        if c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
        elif c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    parts.append(text[start:].strip())
    return parts


def string_of(argument):
    """The string of an argument, or None: a pointer, NULL, or the name of an abstract socket."""
    found = re.search(r'(?<!@)"((?:\\x[0-9a-f]{2})*)"', argument)
    return unhex(found.group(1)) if found else None


def path_of_fd(argument):
    """What -y says of a descriptor, or None."""
    found = re.search(r"<((?:\\x[0-9a-f]{2})+)>", argument)
    return unhex(found.group(1)) if found else None


class Failure:
    """A call that failed: with its paths as given, made absolute, and its flags as strace words them."""

    def __init__(self, pid, name, errno, args, given, paths):
        self.pid, self.name, self.errno, self.args = pid, name, errno, args
        self.given, self.paths = given, paths

    def flags(self):
        """The words of the argument that has flags."""
        at = {"open": 1, "openat": 2, "openat2": 2, "unlinkat": 2, "renameat2": 4, "linkat": 4,
              "execveat": 4}.get(self.name)
        if self.name == "creat":
            return {"O_WRONLY", "O_CREAT", "O_TRUNC"}
        if at is None or at >= len(self.args):
            return set()
        return set(re.findall(r"\b(?:O|AT|RENAME|RESOLVE)_[A-Z_]+", self.args[at]))

    def __repr__(self):
        return f"{self.pid} {self.name} {' '.join(map(repr, self.paths))} {self.errno}"


class Trace:
    """A trace's failures with one of the errnos, from the first execve of `after` on (or from the start)."""

    def __init__(self, file, cwd, errnos=("EACCES", "EPERM", "EXDEV"), after=0):
        with open(file, encoding="ascii") as f:
            self.lines = list(joined(f))
        self.errnos = errnos
        self.cwd = {}
        self.first_cwd = os.path.realpath(cwd)
        self.failures = []
        self.calls = 0
        self.children = {}
        for pid, name, args, result, _ in self.lines:
            if name in FORKS and result and result > 0:
                self.children[result] = (pid, "CLONE_FS" in args)
        self.main = self.lines[0][0] if self.lines else 0
        self.skip = after
        for line in self.lines:
            self.take(*line)

    def place_of(self, pid):
        """The working directory's cell: a thread shares its creator's."""
        if pid not in self.cwd:
            parent, shares = self.children.get(pid, (None, False))
            if parent is None:
                self.cwd[pid] = [self.first_cwd]
            else:
                here = self.place_of(parent)
                self.cwd[pid] = here if shares else list(here)
        return self.cwd[pid]

    def take(self, pid, name, args, result, errno):
        here = self.place_of(pid)
        if name in FORKS:
            if result and result > 0:
                self.place_of(result)
            return
        args = split_arguments(args)
        if name == "chdir":
            if result == 0:
                here[0] = os.path.realpath(os.path.join(here[0], string_of(args[0])))
            return
        if name == "fchdir":
            if result == 0:
                here[0] = path_of_fd(args[0]) or here[0]
            return
        if name not in CALLS:
            return
        self.calls += 1
        self.check_cwd(here, args)
        if self.skip:
            # The program that builds the wall does not count.
            if name == "execve" and pid == self.main and result == 0:
                self.skip -= 1
            return
        # Of one path EXDEV is openat2's own: it would leave RESOLVE_BENEATH or the mount.
        if errno in self.errnos and (errno != "EXDEV" or len(CALLS[name]) == 2):
            self.fail(pid, name, errno, args, here[0])

    def check_cwd(self, here, args):
        for a in args:
            if a.startswith("AT_FDCWD<"):
                told = path_of_fd(a)
                if told and not told.endswith("(deleted)") and told != here[0]:
                    raise AssertionError(f"cwd: followed {here[0]!r}, strace says {told!r}")

    def fail(self, pid, name, errno, args, cwd):
        given, paths = [], []
        for dirfd, at in CALLS[name]:
            text = string_of(args[at]) if at < len(args) else None
            if text is None:
                return
            base = cwd if dirfd is None or args[dirfd].startswith("AT_FDCWD") else path_of_fd(args[dirfd])
            if any("RESOLVE_IN_ROOT" in a for a in args):
                text = text.lstrip("/") or "."
            given.append(text)
            paths.append(os.path.join(base or cwd, text) if text else (base or cwd))
        self.failures.append(Failure(pid, name, errno, args, given, paths))


def joined(lines):
    """(pid, call, arguments, result, errno) of each call, unfinished ones put together."""
    begun = {}
    for number, line in enumerate(lines, 1):
        found = LINE.match(line.rstrip("\n"))
        if not found:
            raise AssertionError(f"line {number} is none of strace -f: {line!r}")
        pid, rest = int(found.group(1)), found.group(2)
        if rest.startswith(("+++", "---")):
            begun.pop(pid, None)
            continue
        unfinished = UNFINISHED.match(rest)
        if unfinished:
            begun[pid] = unfinished.group(1)
            continue
        resumed = RESUMED.match(rest)
        if resumed:
            # An exec by a thread comes back under its leader's number: nothing was begun there.
            rest = begun.pop(pid, "") + resumed.group(1)
        call = CALL.match(rest)
        if not call:
            if rest.endswith(" = ?") or "<detached" in rest or not rest.strip() or resumed:
                continue
            raise AssertionError(f"line {number} is no call: {line!r}")
        name, args, result, errno = call.groups()
        yield pid, name, args, None if result == "?" else int(result), errno
