#!/usr/bin/env python3
"""
Makes logs/ anew with this machine's strace: make.py FIXTURES_DIR. What is made by hand (logs/hand-*)
stays. Afterwards the paths are those of a made-up user's: /home/ann/proj and /srv; nothing of this
machine is left but process numbers, addresses and times.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
LOGS = HERE / "logs"

# What most programs do at their start says nothing here, and would be most of each file.
NOISE = re.compile(r"\b(mmap|mprotect|munmap|pread64|read|rt_sig\w+|brk|set_robust_list|rseq|prlimit64"
                   r"|arch_prctl|set_tid_address|getrandom|futex|lseek|madvise|sigaltstack|getuid|geteuid"
                   r"|getgid|getegid|sysinfo|statfs|wait4)(\(| resumed)")

SHELL = """
cd sub
echo a >new; cat new ../top; mkdir d; rm new; rmdir d
cat /srv/data 2>&-; echo x >/srv/made
cat ~/.ssh/id; echo x >../keep/f
"""
PARALLEL = "cat top & (cd sub; cat inner /srv/data) & wait; cat ~/.ssh/id"
LINKS = """
ln -s /srv/data direct; ln -s ../../../srv up; cat direct up/data
readlink direct up; readlink -f up/data; cat direct up/data; mv direct moved; cat moved; rm moved up
"""
MOVES = """
mv top /srv/gone; mv /srv/gone top; ln top other; mv other keep/; cp -a sub sub2; mv -T sub2 sub3
touch -t 202001010000 top; chmod 600 top; chmod 600 ~/.ssh/id; truncate -s 0 /srv/data; rm -r sub3
"""
THREADS = """
import os, threading
def go():
    os.chdir("/srv"); open("data").close()
t = threading.Thread(target=go); t.start(); t.join()
open("data").close()
try: open(os.environ["HOME"] + "/.ssh/id")
except OSError: pass
"""
DESCRIPTORS = """
import os
srv = os.open(os.environ["SRV"], os.O_RDONLY | os.O_DIRECTORY)
d = os.dup(srv); os.close(srv); os.open("data", os.O_RDONLY, dir_fd=d)
os.fchdir(d); os.stat("data"); f = os.open("made", os.O_CREAT | os.O_EXCL | os.O_WRONLY); os.ftruncate(f, 3)
os.unlink("made", dir_fd=d); os.mkdir("dir"); os.rmdir("dir")
r, w = os.pipe(); os.dup2(d, 77); os.rename("data", "moved", src_dir_fd=77, dst_dir_fd=d); os.rename("moved", "data")
if os.fork() == 0: os.open("data", os.O_RDONLY, dir_fd=77); os._exit(0)
os.wait()
"""
SOCKETS = """
import os, socket
s = socket.socket(socket.AF_UNIX); s.bind("sock")
c = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
for a in ("/srv/none", "\\0abstract"):
    try: c.connect(a)
    except OSError: pass
os.unlink("sock")
a, b = socket.socketpair()
f = os.open(os.environ["SRV"], os.O_RDONLY | os.O_DIRECTORY)
socket.send_fds(a, [b"x"], [f]); os.close(f); _, fds, _, _ = socket.recv_fds(b, 1, 1)
os.open("data", os.O_RDONLY, dir_fd=fds[0])
"""
ODD = """
import os
for n in (b"a b", b'q"uote', b"new\\nline", b"<angle>", b"\\xff\\xfe", b"tab\\t\\\\", "\u00e4\u20ac".encode(), b"..."):
    open(n, "w").close(); os.unlink(n); os.mkdir(b"keep/" + n); os.rmdir(b"keep/" + n)
"""
WALLED = """
import ctypes, os, struct
call = ctypes.CDLL(None).syscall
ruleset = call(444, struct.pack("Q", 4), 8, 0)
call(445, ruleset, 1, struct.pack("=Qi", 4, os.open("/usr", os.O_PATH)), 0)
ctypes.CDLL(None).prctl(38, 1, 0, 0, 0); call(446, ruleset, 0)
for f in ("data", "none"):
    try: open(os.environ["SRV"] + "/" + f)
    except OSError: pass
"""

# name, options of strace, where it writes (o: -o FILE, e: stderr, ff: -ff), command, lines to keep
LOGS_TO_MAKE = [
    ("f-o", "-f", "o", SHELL, None),
    ("f-o-all", "-f", "o", "cat top /srv/data", "all"),
    ("plain", "", "o", "exec cat top /srv/data ~/.ssh/id", None),
    ("plain-stderr", "", "e", "exec cat top /srv/data 2>/dev/null", "all"),
    ("f-stderr", "-f", "e", "exec >/dev/null;" + PARALLEL, None),
    ("f-stderr-q", "-f -q", "e", "exec >/dev/null;" + PARALLEL, None),
    ("f-stderr-output", "-f", "e", "cat top; cat /srv/data", "all"),
    ("f-qq", "-f -qq", "o", SHELL, None),
    ("t", "-f -t", "o", SHELL, None),
    ("tt-T", "-f -tt -T", "o", PARALLEL, None),
    ("ttt", "-f -ttt", "o", PARALLEL, None),
    ("r", "-f -r", "o", SHELL, None),
    ("r-t", "-f -r -t", "o", PARALLEL, None),
    ("timestamps-ns", "-f --timestamps=unix,ns", "o", PARALLEL, None),
    ("y", "-f -y", "o", LINKS, None),
    ("yy-v", "-f -yy -v -s 4096", "o", PARALLEL, None),
    ("y-xx", "-f -y -xx", "o", SHELL, None),
    ("xx", "-f -xx", "o", MOVES, None),
    ("x-s3", "-f -x -s 3", "o", ODD, "py"),
    ("s0", "-f -s 0", "o", SHELL, None),
    ("odd-names", "-f", "o", ODD, "py"),
    ("odd-names-y", "-f -y", "o", ODD, "py"),
    ("i-n", "-f -i -n", "o", SHELL, None),
    ("decode-comm", "-f --decode-pids=comm", "o", PARALLEL, None),
    ("decode-comm-stderr", "-f --decode-pids=comm", "e", "exec >/dev/null;" + PARALLEL, None),
    ("k", "-f -k -e trace=openat,execve", "o", "cat top /srv/data", None),
    ("C", "-f -C -e trace=openat", "o", "cat top /srv/data", None),
    ("trace-file", "-f -e trace=%file", "o", SHELL, None),
    ("trace-file-y", "-f -y -e trace=%file", "o", DESCRIPTORS, "py"),
    ("trace-open", "-f -e trace=openat,open,unlinkat", "o", DESCRIPTORS, "py"),
    ("inject", "-f -e inject=openat:error=EACCES:when=4", "o", "cat top", None),
    ("moves", "-f", "o", MOVES, None),
    ("links", "-f", "o", LINKS, None),
    ("descriptors", "-f", "o", DESCRIPTORS, "py"),
    ("threads", "-f", "o", THREADS, "py"),
    ("threads-yy-stderr", "-f -yy", "e", THREADS, "py"),
    ("sockets", "-f", "o", SOCKETS, "py"),
    ("sockets-yy", "-f -yy", "o", SOCKETS, "py"),
    ("ff", "-ff", "ff", PARALLEL, None),
    ("ff-ttt-y", "-ff -ttt -y", "ff", SHELL, None),
    ("i386", "-f", "o", "$FIXTURES/shape_i386static plain /srv/data; cat ~/.ssh/id", None),
    *((f"shape-{how}", "-f", "o", f"$FIXTURES/shape {how} /srv/data; cat ~/.ssh/id >&2", None)
      for how in ("int80", "thread_exec", "leader_gone", "clone_files", "by_vfork", "by_clone3", "clone_parent",
                  "daemon_twice", "namespaces", "renamed")),
    ("shape-thread_exec-stderr", "-f", "e", "exec $FIXTURES/shape thread_exec /srv/data 2>/dev/null", None),
    ("walled", "-f", "o", WALLED, "py"),
    ("killed", "-f", "o", SHELL, "cut"),
]


def tidy(text, base, keep):
    lines = text.split("\n")
    if keep != "all":
        # Of a noisy call that was begun nothing may be left: the parts go together, both being noise.
        lines = [line for line in lines if not NOISE.search(line) or line.endswith("attached")]
    text = "\n".join(lines)
    for real, told in ((f"{base}/ann", "/home/ann"), (f"{base}/srv", "/srv"), (f"{base}/opt", "/opt")):
        text = text.replace(real, told)
        text = text.replace(hexed(real), hexed(told))
    # The beginnings of them, in strings that strace cut.
    text = re.sub(r"/tmp/strace-\w*|/tmp/s\w*(?=\"\.\.\.)", "/base", text).replace('"/tmp/srv"', '"/srv"')
    if keep == "py":
        # Where Python looks for its own modules is hundreds of lines.
        text = "\n".join(line for line in text.split("\n") if not re.search(r'python|/usr/l|\\x70\\x79|pyvenv', line)
                         or "execve" in line or "clone" in line)
    return text


def hexed(text):
    return "".join(f"\\x{b:02x}" for b in text.encode())


def world(base):
    proj = base / "ann/proj"
    for d in (proj / "sub", proj / "keep", base / "ann/.ssh", base / "srv"):
        d.mkdir(parents=True)
    for f in (proj / "top", proj / "sub/inner", proj / "keep/f", base / "ann/.ssh/id", base / "srv/data"):
        f.write_text("text\n")
    return proj


def make(name, options, where, command, keep, fixtures):
    base = pathlib.Path(tempfile.mkdtemp(prefix="strace-"))
    out = base / "out"
    proj = world(base)
    fixtures = shutil.copytree(fixtures, base / "opt", ignore=lambda d, names: set(names) - {"shape", "shape_i386static"})
    env = {"PATH": "/usr/bin:/bin", "HOME": str(base / "ann"), "SRV": str(base / "srv"), "FIXTURES": str(fixtures)}
    command = command.replace("/srv", str(base / "srv")).replace("../../../" + str(base)[1:], "../../../")
    argv = ["/usr/bin/python3", "-S", "-E", "-c", command] if keep == "py" else ["/bin/sh", "-c", command]
    to = [] if where == "e" else ["-o", str(out)]
    with open(base / "err", "w") as err, open(os.devnull, "w") as null:
        subprocess.run(["strace", *options.split(), *to, *argv], cwd=proj, env=env, check=False,
                       stdout=err if where == "e" and "output" in name else null, stderr=err if where == "e" else null)
    files = sorted(base.glob("out.*")) if where == "ff" else [base / "err" if where == "e" else out]
    for file in files:
        text = tidy(file.read_text(errors="surrogateescape"), str(base), keep)
        if keep == "cut":
            text = text[:int(len(text) * 0.9)].rstrip("\n") + "\n"
            text = text[:text.rindex("openat(") + 30]
        suffix = "." + file.suffix[1:] if where == "ff" else ".log"
        (LOGS / (name + suffix)).write_text(text, errors="surrogateescape")
    shutil.rmtree(base)


def main():
    for old in LOGS.iterdir():
        if not old.name.startswith("hand-"):
            old.unlink()
    for row in LOGS_TO_MAKE:
        if len(sys.argv) < 3 or row[0] in sys.argv[2:]:
            make(*row, sys.argv[1])


if __name__ == "__main__":
    main()
