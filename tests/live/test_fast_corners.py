"""
The fast path where it could go wrong: threads and supervisors that are killed, breakpoints, kernels
that forbid it; and many mixed calls, with and without it.
"""

import os
import random
import shutil
import subprocess
import time

import run_help
from run_help import both_users, fixture, needs
from test_fast import FastCase

GO = """
package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
)

// opens TIMES GOOD SECRET: so often on each of four threads, one in ten refused; then in a child.
func opens(times int, good string, secret string, wrong chan int) {
	runtime.LockOSThread()
	bad := 0
	for i := 0; i < times; i++ {
		f, err := os.Open(good)
		if err != nil {
			bad++
		} else {
			f.Close()
		}
		if i%10 == 9 {
			_, err = os.Open(secret)
			if e, ok := err.(*os.PathError); !ok || e.Err != syscall.EACCES {
				bad++
			}
		}
	}
	wrong <- bad
}

func main() {
	times, _ := strconv.Atoi(os.Args[1])
	wrong := make(chan int)
	sum := 0
	for t := 0; t < 4; t++ {
		go opens(times, os.Args[2], os.Args[3], wrong)
	}
	for t := 0; t < 4; t++ {
		sum += <-wrong
	}
	fmt.Println("wrong", sum)
	if len(os.Args) == 4 {
		child := exec.Command(os.Args[0], os.Args[1], os.Args[2], os.Args[3], "child")
		child.Stdout = os.Stdout
		if child.Run() != nil {
			fmt.Println("no child")
		}
	}
}
"""


@both_users
class Go(FastCase):
    @needs("go")
    def test_a_go_program(self):
        """Its threads are there before its first open, and preempt each other by signals."""
        self.write("home/main.go", GO)
        program = os.path.join(self.project, "opens")
        built = subprocess.run(["go", "build", "-o", program, "main.go"], cwd=self.home, capture_output=True, text=True,
                               env={**os.environ, "HOME": self.home, "GO111MODULE": "off", "GOFLAGS": "",
                                    "GOCACHE": os.path.join(self.home, "cache"), "CGO_ENABLED": "0"}, timeout=100)
        if built.returncode:
            self.skipTest(f"go can't build: {built.stderr[:200]}")
        self.own(program)
        on, off = self.both_ways(program, "300", self.good, self.secret)
        self.assertEqual("wrong 0\nwrong 0\n", on.out)
        self.assertEqual(2 * 4 * 30, on.denials(self.secret)[0]["count"])
        self.assertLess(4 * self.stops(on), self.stops(off), on)
        self.assertGreater(self.stops(off), 2 * 2 * 4 * 300)


@both_users
class Corners(FastCase):
    """tests/fixtures/fast_corners.c."""

    def way(self, name, *more, args=()):
        program = fixture("fast_corners")
        on, off = self.both_ways(program, name, self.good, self.secret, *more, args=("-x", program, *args))
        self.assertStatus(on)
        return on

    def test_killed_at_any_moment(self):
        """Of a call, of an exec, of the change itself: who lives on has whole instructions."""
        program = fixture("fast_corners")
        for fast in ("on", "off"):
            done = self.run_report("--on-denial", "report", "--fast", fast, "-x", program, "--", program, "kill", self.good,
                                   self.secret, "60")
            self.assertEqual((0, "wrong 0\n"), (done.status, done.out), done)
            self.assertEqual({self.secret}, {d["path"] for d in done.report["denials"]})

    def test_the_supervisor_is_killed_at_any_moment(self):
        program = fixture("fast_corners")
        rest = random.Random(3)
        for _ in range(6):
            mark = f"{self.secret}-{rest.random()}"
            os.symlink(self.secret, mark)
            process = self.start([run_help.WARDER, "run", "-q", "--on-denial", "report", "-x", program, "--", program,
                                  "kill", self.good, mark, "1000000"], stdin=subprocess.DEVNULL,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(0.05 + rest.random() * 0.2)
            process.kill()
            process.wait(30)
            self.assertTrue(run_help.wait_until(lambda: not self.having(mark), 30), mark)

    def having(self, word):
        """Processes with this word among their arguments."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline") as f:
                    found += [pid] if word in f.read() else []
            except OSError:
                pass
        return found

    def test_marks_in_calls_of_32_bits(self):
        """There they are no marks: the call is refused, and told."""
        program = fixture("fast_corners")
        done = self.run_report("--on-denial", "report", "-x", program, "--", program, "narrow", self.good, self.secret)
        self.assertStatus(done)
        self.assertEqual("wrong 0\n", done.out)
        self.assertIn("marks 1\n", done.err)
        self.assertEqual(60, done.denials(self.secret)[0]["count"])

    def test_a_handler_that_jumps_away(self):
        program = fixture("fast_corners")
        for fast in ("on", "off"):
            done = self.run_report("--on-denial", "report", "--fast", fast, "-x", program, "--", program, "jumps", self.good,
                                   self.secret)
            self.assertEqual((0, "wrong 0\n"), (done.status, done.out), done)

    def test_a_handler_that_unwinds(self):
        """Wherever it met the program, its stack leads to where it began."""
        program = fixture("fast_corners")
        done = self.run_report("--on-denial", "report", "-x", program, "--", program, "stacks", self.good, self.secret)
        self.assertEqual((0, "wrong 0, lost 0\n"), (done.status, done.out), done)
        self.assertGreater(done.report["engine"]["patched"], 0)

    def test_every_register(self):
        """With what each is for the call, its upper half, vectors and flags; of every kind of result."""
        on = self.way("registers")
        self.assertEqual("wrong 0, lost 0\n", on.out)
        self.assertEqual(150, on.denials(self.secret)[0]["count"])

    def test_text_that_is_compared_with_its_file(self):
        """It finds the jumps and the stubs, nothing else, and lives with them."""
        program = fixture("fast_corners")
        for fast, some in (("on", "some"), ("off", "none")):
            done = self.run_report("--on-denial", "report", "--fast", fast, "-x", program, "--", program, "text", self.good,
                                   self.secret)
            self.assertEqual((0, f"wrong 0, jumps {some}, stubs {some}, others 0\n"), (done.status, done.out), done)

    def test_breakpoints_of_another(self):
        """Where an int3 stands nothing is changed; one that is put over a jump is found again there."""
        self.assertEqual("wrong 0, hits 216\n", self.way("breakpoint").out)

    def test_a_changed_process_execs_a_copy(self):
        """A program that came into being in this run, by a granted descriptor (tracer/execfd.h)."""
        script = 'cp "$1" new-program && "$2" exec "$3" "$4" ./new-program again "$3" "$4" 60'
        program = fixture("fast_corners")
        os.chmod(self.project, 0o777)
        on, off = self.both_ways("sh", "-c", script, "sh", program, program, self.good, self.secret,
                                 args=("-x", program, "-r", program, "--rule", "deny x .",
                                       "--rule", "allow rx ./new-*"))
        self.assertEqual("wrong 0\nwrong 0\n", on.out, on)
        self.assertIn("sealed copy", " ".join(on.report["engine"]["notes"]), on)
        self.assertLess(self.stops(on), self.stops(off) / 2)

    def test_a_memory_that_can_not_be_written(self):
        """As proc_mem.force_override has it: told once, and every call takes its two stops."""
        program = fixture("fast_corners")
        done = self.native(fixture("locked_kernel"), run_help.WARDER, "run", "--on-denial", "report", "--report",
                           self.report_file, "-x", program, "--", "sh", "-c", '"$@"; "$@"; "$@"', "sh", program, "again",
                           self.good, self.secret, "100")
        report = self.read_report()
        self.assertEqual((0, 3 * "wrong 0\n"), (done.status, done.out), done.err)
        self.assertEqual([300], [d["count"] for d in report["denials"]])
        self.assertEqual(0, report["engine"]["patched"])
        self.assertGreater(report["engine"]["stops"], 1200)
        note, = [n for n in report["engine"]["notes"] if "stop" in n]
        self.assertIn("the kernel does not let", note)


def stress(case, times, threads, seed=1):
    """
    tests/fixtures/fast_stress.c, fast and slow: results and denials are the same, and the report
    tells of each name as many refusals as the program itself was given.
    """
    program = fixture("fast_stress")
    done = []
    for i in range(8):
        case.write(f"outside/{i}", "x")
    for fast in ("on", "off"):
        area = os.path.join(case.project, "area")
        os.mkdir(area)
        case.own(area)
        r = case.run_report("--on-denial", "report", "--fast", fast, "-x", program, "--", program, str(seed), str(times),
                            str(threads), area, case.outside, timeout=900)
        case.assertStatus(r)
        shutil.rmtree(area)
        told = {}
        for d in r.report["denials"]:  # in `area` there are such as anybody would get: EPERM for a directory's link
            if d["path"].startswith(case.outside):
                told[d["path"]] = told.get(d["path"], 0) + d["count"]
        seen = {}
        for line in filter(lambda l: l.startswith("refused"), r.out.splitlines()):
            _, path, count = line.split()
            if int(count):
                seen[path] = seen.get(path, 0) + int(count)
        case.assertEqual(seen, told)
        case.assertGreater(sum(seen.values()), times * max(threads, 2) / 200)
        done.append((r, sorted((d["path"], tuple(d["access"]), d["verdict"], d["call"], d["errno"], d["count"])
                               for d in r.report["denials"])))
    (on, denials), (off, others) = done
    case.assertEqual(off.out, on.out)
    case.assertEqual(others, denials)
    return on, off


@both_users
class Stress(FastCase):
    def test_mixed_calls(self):
        on, off = stress(self, 4000, 0)
        self.assertLess(3 * self.stops(on), self.stops(off), on)

    def test_mixed_calls_of_threads(self):
        stress(self, 1500, 3, seed=7)


if __name__ == "__main__":
    run_help.main()
