"""
uprobes, the kernel's own breakpoints (perf, bpftrace): they come and go from outside, whoever traces, at instructions
that warder has changed.
"""

import ctypes
import os
import subprocess
import unittest

from run_help import TIMEOUT, WARDER, RunCase, both_users, fixture, main

# Before each line that comes: 20 directories are made and 20 refused, here, in a child and in a thread.
STEPS = """
import os, sys, threading
def step(name):
    good = refused = 0
    for i in range(20):
        try:
            os.mkdir(f"made-{name}")
            os.rmdir(f"made-{name}")
            good += 1
        except OSError as e:
            print(e, flush=True)
        try:
            os.mkdir(sys.argv[1])
        except PermissionError:
            refused += 1
        except OSError as e:
            print(e, flush=True)
    print(name, good, refused, end="; ", flush=True)
def all_of_them():
    step("here")
    if not os.fork():
        step("child")
        os._exit(0)
    os.wait()
    if sys.argv[2] == "threads":
        thread = threading.Thread(target=step, args=("thread",))
        thread.start()
        thread.join()
    print(flush=True)
stop = threading.Event()
step("first")
if sys.argv[2] == "threads":
    threading.Thread(target=stop.wait).start()
all_of_them()
for line in sys.stdin:
    all_of_them()
stop.set()
"""


def site_of_mkdir():
    """The C library, and where in it `mov $83,%eax; syscall` stands."""
    address = ctypes.cast(ctypes.CDLL(None).mkdir, ctypes.c_void_p).value
    code = ctypes.string_at(address, 32)
    address += code.find(b"\xb8\x53\0\0\0\x0f\x05")
    with open("/proc/self/maps", encoding="utf-8") as f:
        for line in f:
            words = line.split()
            start, end = (int(w, 16) for w in words[0].split("-"))
            if start <= address < end and b"\xb8\x53\0\0\0\x0f\x05" in code:
                return words[5], int(words[2], 16) + address - start
    return None


@unittest.skipUnless(os.uname().machine == "x86_64", "elsewhere nothing is changed")
@unittest.skipUnless(os.getuid() == 0, "a uprobe needs root")
@both_users
class Probes(RunCase):
    def probe(self, pid):
        """A uprobe at mkdir in that process."""
        site = site_of_mkdir()
        if not site:
            self.skipTest("this C library's mkdir() is another")
        p = subprocess.Popen([fixture("fast_probe"), site[0], str(site[1]), str(pid)], text=True, stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(self.end, p)
        if p.stdout.readline() != "on\n":
            self.skipTest(p.communicate()[1])
        return p

    def phases(self, how):
        """The same steps before, while and after there is a probe, twice; what they told."""
        # From Python 3.12 on a fork beside threads is warned of.
        run = self.start([WARDER, "run", "-q", "--on-denial", "report", "--report", self.report_file, "--",
                          "/usr/bin/python3", "-Wignore", "-c", STEPS, f"{self.outside}/new", how],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        told = [run.stdout.readline().removeprefix("first 20 20; ")]

        def step():
            run.stdin.write("\n")
            run.stdin.flush()
            told.append(run.stdout.readline())
        step()
        for _ in range(2):
            p = self.probe(self.children_of(run)[0])
            step()
            out, _ = p.communicate("", TIMEOUT)
            self.assertRegex(out, r"hits [1-9]")
            step()
        rest, _ = run.communicate("", TIMEOUT)
        self.assertEqual((0, ""), (run.returncode, rest))
        return told

    def come_and_go(self, *names, how):
        told = self.phases(how)
        self.assertEqual(["".join(f"{name} 20 20; " for name in names) + "\n"] * 6, told)
        report = self.read_report()
        self.assertEqual([(f"{self.outside}/new", 20 + 6 * 20 * len(names))],
                         [(d["path"], d["count"]) for d in report["denials"]])
        self.assertEqual(report["engine"]["fast"], report["engine"]["patched"] > 0)

    def test_they_come_and_go(self):
        """Where one was taken away the first byte is the file's again, and not what stood there."""
        self.come_and_go("here", "child", how="alone")

    def test_they_come_and_go_where_there_are_threads(self):
        self.come_and_go("here", "child", "thread", how="threads")


if __name__ == "__main__":
    main()
