"""
What is measured: one row a workload. To add one, add a row to `table()`.

Each has a directory of its own with `project` (the current directory; the policy opens it) and
`outside` (no rule opens it).
"""

import os
import shutil
import tempfile
from dataclasses import dataclass
from typing import Callable, Optional

import trees

SYSTEM_HEADERS = ("stdio.h", "stdlib.h", "string.h", "unistd.h", "errno.h", "fcntl.h",
                  "sys/stat.h", "pthread.h")
IMPORTS = "json, http.client, email, asyncio, unittest, xml.dom.minidom, sqlite3, decimal"


@dataclass(frozen=True)
class Sizes:
    files: int = 5000
    commits: int = 20
    times: int = 5  # a short program is run so often
    sources: int = 60
    new_sources: int = 20
    headers: int = 100
    spawns: int = 500
    reads: int = 100_000
    opens: int = 5000  # a thread
    storm: int = 10_000
    package: int = 300
    include: str = "/usr/include"
    share: str = "/usr/share"


FULL = Sizes()
SMOKE = Sizes(files=60, commits=3, times=1, sources=4, new_sources=2, headers=20, spawns=5, reads=200,
              opens=20, storm=100, package=5, include="/usr/include/linux",
              share="/usr/share/git-core")


@dataclass(frozen=True)
class Place:
    """A workload's directories."""
    top: str
    env: dict

    def __getattr__(self, name):
        if name not in ("project", "outside"):
            raise AttributeError(name)
        return os.path.join(self.top, name)

    def at(self, *names):
        return os.path.join(self.project, *names)

    def clear(self, path):
        """
        Puts away what a run made. It is deleted when all is measured: for minutes ext4 gives no new
        file the inode of a deleted one, and searches on (recently_deleted(), fs/ext4/ialloc.c).
        """
        if os.path.lexists(path):
            os.rename(path, os.path.join(tempfile.mkdtemp(dir=self.top, prefix="old-"), "it"))

    def empty(self, path):
        """An empty directory of that name, whatever was there."""
        self.clear(path)
        os.makedirs(path)


@dataclass(frozen=True)
class Workload:
    name: str
    title: str
    # the command; `share` is the part of the whole that is done (1, or less for slow ways to watch)
    argv: Callable[[Place, float], list]
    prepare: Callable[[Place], None] = lambda place: None  # once
    reset: Callable[[Place], None] = lambda place: None    # before each run
    made: Optional[str] = None  # what it makes, below project: must be as native makes it
    times: bool = False         # the files' times are part of that
    options: Callable[[Place], list] = lambda place: []    # of `warder run`
    needs: tuple = ()           # programs
    attributes: bool = False    # it changes them, a few calls for each file
    apart: bool = False         # left out of the mean: no program does only this
    divisible: bool = False     # slow ways to watch do a tenth, and the ratio is per operation
    refused: int = 0            # opens that the report must tell
    brokered: int = 0           # opens that the broker must have done, at least


def shell(text):
    return lambda place, share: ["sh", "-c", text]


def again(times, command):
    return shell(f"i=0; while [ $i -lt {times} ]; do {command} || exit; i=$((i+1)); done")


def part(count, share):
    return str(max(1, round(count * share)))


def python():
    """An interpreter of the system's: one in a home directory is out of the default policy's reach."""
    return "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else "python3"


def readers(s):
    return [
        Workload("grep", f"grep -r over {s.include}",
                 lambda p, share: ["grep", "-rl", "ptrace", s.include], needs=("grep",)),
        Workload("find", f"find {s.share}",
                 lambda p, share: ["find", s.share, "-name", "*.conf"], needs=("find",)),
    ]


def gits(s):
    def prepare(p):
        trees.repository(p.project, s.files, s.commits, p.env)

    rows = (("git-status", "status --porcelain"), ("git-grep", "grep -c needle"),
            ("git-log", "log --stat --no-color"))
    return [Workload(name, f"{s.times} × git {what.split()[0]}, {s.files} files",
                     again(s.times, "git " + what), prepare, needs=("git",))
            for name, what in rows]


def in_repository(prepare):
    """The same in a git repository: its hooks are an exception, so what is new beside them is brokered."""
    def both(p):
        trees.repository(p.project, 1, 1, p.env)
        prepare(p)
    return both


def builds(s):
    def sources(count):
        def prepare(p):
            trees.c_files(p.project, count, SYSTEM_HEADERS[:2])
            trees.makefile(p.project, count)
        return prepare

    return [
        Workload("gcc", "gcc -c of 8 files", shell("cd obj && gcc -O1 -c ../s*.c"),
                 lambda p: trees.c_files(p.project, 8, SYSTEM_HEADERS),
                 lambda p: p.empty(p.at("obj")), made="obj", needs=("gcc",)),
        Workload("make", f"make -j2 of {s.sources} files", lambda p, share: ["make", "-s", "-j2"],
                 sources(s.sources), lambda p: p.empty(p.at("obj")), made="obj",
                 needs=("gcc", "make")),
        Workload("make-new", f"make -j2 of {s.new_sources} files into a new directory",
                 lambda p, share: ["make", "-s", "-j2", "O=build/new/obj"],
                 in_repository(sources(s.new_sources)), lambda p: p.clear(p.at("build")),
                 made="build", needs=("gcc", "make", "git")),
    ]


def brokered_build(s, name, percent, apart):
    """
    A build that includes headers which came into being in this run, where a glob opens them: no
    Landlock rule can. So many of a hundred lie there; the others in the project.
    """
    names = [f"h{i:03}.h" for i in range(s.headers)]
    there = names[:max(1, s.headers * percent // 100)]
    sources = 12 if s is FULL else 2

    def prepare(p):
        trees.headers(p.at("include"), names[len(there):])
        trees.headers_included(p.project, sources, names)
        trees.makefile(p.project, sources, ("include", p.outside))

    def reset(p):
        p.empty(p.at("obj"))
        p.empty(p.outside)
        trees.headers(p.at("stage"), there)

    return Workload(
        name, f"a build, {percent} % of its headers' opens brokered",
        lambda p, share: ["sh", "-c", f"mv stage/* {p.outside}/ && make -s -j2"], prepare, reset,
        made="obj", needs=("gcc", "make"), apart=apart, brokered=sources * len(there),
        options=lambda p: ["--rule", f"allow rwx {p.outside}/*.h",
                           "--rule", f"allow list {p.outside} exact"])


def copies(s):
    def tree(p):
        trees.plain(p.at("src"), s.files)

    def out(p):
        p.clear(p.at("out"))

    return [
        Workload("tar", f"tar x of {s.files} files", lambda p, share: ["tar", "xf", "a.tar", "-C", "out"],
                 lambda p: trees.archive(p.at("a.tar"), s.files), lambda p: p.empty(p.at("out")),
                 made="out", times=True, attributes=True, needs=("tar",)),
        Workload("cp", f"cp -a of {s.files} files", lambda p, share: ["cp", "-a", "src", "out"],
                 tree, out, made="out", times=True, attributes=True),
        Workload("rsync", f"rsync -a of {s.files} files",
                 lambda p, share: ["rsync", "-a", "src/", "out/"], tree, out, made="out", times=True,
                 attributes=True, needs=("rsync",)),
    ]


def languages(s):
    def package(p):
        trees.package(p.at("benched-1.0.0.tgz"), s.package)

    def fresh(p):
        for name in ("node_modules", "package-lock.json"):
            p.clear(p.at(name))
        trees.write(p.at("package.json"), '{"name":"user","version":"1.0.0"}\n')

    return [
        Workload("python", f"{s.times} × python imports",
                 again(s.times, f"{python()} -c 'import {IMPORTS}'"), needs=(python(),)),
        Workload("node", f"{s.times} × node start", again(s.times, "node -e 'console.log(1)'"),
                 needs=("node",)),
        Workload("npm", "npm install of a local package",
                 lambda p, share: ["npm", "install", "--silent", "--offline", "--no-audit", "--no-fund",
                                   "./benched-1.0.0.tgz"],
                 in_repository(package), fresh, made="node_modules", needs=("node", "npm", "git"),
                 options=lambda p: ["--preset", "node"]),
    ]


def loops(s, work):
    def prepare(p):
        shutil.copy(work, p.at("work"))
        for top in (p.project, p.outside):
            trees.write(os.path.join(top, "file"), "x" * 100)

    def row(name, title, argv, **more):
        return Workload(name, title, argv, prepare, **more)

    return [
        row("spawn", f"{s.spawns} × fork and exec",
            lambda p, share: ["./work", "spawns", part(s.spawns, share), "/bin/true"], divisible=True),
        row("reads", f"{s.reads} × open, 5 preads, close",
            lambda p, share: ["./work", "reads", part(s.reads, share), "file"], divisible=True),
        row("threads", f"8 threads, each {s.opens} × open",
            lambda p, share: ["./work", "threads", "8", part(s.opens, share), "file"], divisible=True),
        row("denials", f"{s.storm} refused opens",
            lambda p, share: ["./work", "opens", part(s.storm, share), f"{p.outside}/file"],
            apart=True, divisible=True, refused=s.storm),
        # A directory alone, without what is in it, is what no Landlock rule can say.
        row("grants", f"{s.storm} brokered opens",
            lambda p, share: ["./work", "opens", part(s.storm, share), p.outside],
            apart=True, divisible=True, brokered=s.storm,
            options=lambda p: ["--rule", f"allow list {p.outside} exact"]),
    ]


def table(s, work):
    """Every workload of these sizes; `work` is the program bench_work."""
    rows = (readers(s) + gits(s) + builds(s) + [brokered_build(s, "build-1", 1, False)] + languages(s)
            + loops(s, work) + copies(s) + [brokered_build(s, "build-100", 100, True)])
    return sorted(rows, key=lambda w: w.apart)
