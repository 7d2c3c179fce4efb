"""The files that workloads work on: generated, the same every time, below a directory of the caller's."""

import hashlib
import io
import os
import shutil
import stat
import subprocess
import tarfile

OLD = 1_600_000_000  # seconds; mtimes that a copy has to set
FILES_A_DIR = 100
MODES = (0o644, 0o600, 0o755, 0o444)


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(text)


def name_of(i):
    return f"d{i // FILES_A_DIR:03}/f{i % FILES_A_DIR:03}.txt"


def text_of(i, version=0):
    needle = "needle\n" if i % 50 == 0 else ""
    return f"file {i}, version {version}\n{needle}" + f"line of file {i}\n" * (i % 20)


def plain(top, count):
    """`count` small files with modes and times of their own."""
    for i in range(count):
        path = os.path.join(top, name_of(i))
        write(path, text_of(i))
        os.chmod(path, MODES[i % len(MODES)])
        os.utime(path, (OLD + i, OLD + i))


def archive(path, count, prefix="", mode="w"):
    with tarfile.open(path, mode) as tar:
        for i in range(count):
            add(tar, prefix + name_of(i), text_of(i), MODES[i % len(MODES)], OLD + i)


def add(tar, name, text, mode=0o644, mtime=OLD):
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.mtime = len(text), mode, mtime
    tar.addfile(info, io.BytesIO(text.encode()))


def package(path, count):
    """An npm package as `npm pack` makes them."""
    with tarfile.open(path, "w:gz") as tar:
        add(tar, "package/package.json", '{"name":"benched","version":"1.0.0","main":"d000/f000.txt"}\n')
        for i in range(count):
            add(tar, "package/" + name_of(i), text_of(i))


def repository(top, count, commits, env):
    """A git repository of `count` files; each commit touches its share of them."""
    def git(*args, **more):
        subprocess.run(["git", *args], cwd=top, env=env, check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, **more)

    stream = bytearray()
    for c in range(commits):
        files = range(count) if c == 0 else range(c, count, commits)
        message = f"commit {c}\n"
        stream += (f"commit refs/heads/main\ncommitter Bench <bench@localhost> {OLD + c} +0000\n"
                   f"data {len(message)}\n{message}").encode()
        for i in files:
            text = text_of(i, c)
            stream += f"M 100644 inline {name_of(i)}\ndata {len(text)}\n{text}\n".encode()
    os.makedirs(top, exist_ok=True)
    git("init", "-q", "-b", "main")
    git("fast-import", "--quiet", input=bytes(stream))
    git("reset", "-q", "--hard", "main")
    git("repack", "-adq")
    git("status")


def c_files(top, count, system_headers):
    includes = "".join(f"#include <{h}>\n" for h in system_headers)
    for i in range(count):
        write(os.path.join(top, f"s{i:02}.c"),
              f"{includes}int f{i:02}(int x);\nint f{i:02}(int x)\n{{\n\treturn x * {i} + 1;\n}}\n")


def makefile(top, count, include_dirs=()):
    """Builds the files of c_files() into $(O), made where it is not there, and links them."""
    flags = " ".join("-I" + d for d in include_dirs)
    write(os.path.join(top, "Makefile"), f"""\
O ?= obj
OBJECTS := $(patsubst %.c,$(O)/%.o,$(wildcard s*.c))
$(O)/program: $(OBJECTS)
	gcc -shared -o $@ $^
$(O)/%.o: %.c | $(O)
	gcc {flags} -fPIC -c -o $@ $<
$(O):
	mkdir -p $@
""")


def headers(top, names):
    for name in names:
        write(os.path.join(top, name), f"#define {name[:-2].upper()} 1\n")


def headers_included(top, count, names):
    """c_files() that include these by name."""
    includes = "".join(f'#include "{n}"\n' for n in names)
    for i in range(count):
        write(os.path.join(top, f"s{i:02}.c"),
              f"{includes}int f{i:02}(void);\nint f{i:02}(void)\n{{\n\treturn {i};\n}}\n")


def one(path):
    """What there is to tell of one file: kind and mode, time of a regular file, content."""
    st = os.lstat(path)
    if stat.S_ISLNK(st.st_mode):
        return (oct(st.st_mode), None, os.readlink(path))
    if not stat.S_ISREG(st.st_mode):
        return (oct(st.st_mode), None, None)
    with open(path, "rb") as f:
        return (oct(st.st_mode), int(st.st_mtime), hashlib.sha256(f.read()).hexdigest())


def fingerprint(top, times):
    """Everything below `top`, as one hash; with the files' times only where they are part of it."""
    digest = hashlib.sha256()
    for here, dirs, files in os.walk(top):
        dirs.sort()
        for name in sorted(dirs + files):
            path = os.path.join(here, name)
            mode, mtime, content = one(path)
            digest.update(repr((os.path.relpath(path, top), mode, times and mtime, content)).encode())
    return digest.hexdigest()
