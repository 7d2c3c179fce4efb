#!/usr/bin/env python3
"""Who made a refused call: the native stack, on request, whatever the program does to hide it."""

import itertools
import json
import os
import shutil
import signal
import struct
import subprocess
import threading

from run_help import RunCase, Talk, both_users, deny, fixture, main, needs, wait_until

NEST = fixture("unwind_nest")
CHAIN = ["c_inner", "b_middle", "a_outer"]


def functions(stack):
    return [f["function"] for f in stack]


def beyond_libc(stack):
    """From the program's own first frame on: how many of libc's come before it is libc's affair (glibc 2.41: three)."""
    return list(itertools.dropwhile(lambda f: "libc.so" in (f["object"] or ""), stack))


def is_within(order, names):
    """Do they come in this order (others between them)?"""
    rest = iter(names)
    return all(any(name == n for n in rest) for name in order)


class Stacks(RunCase):
    def setUp(self):
        super().setUp()
        self.secret = self.write("outside/secret", "the secret\n")

    def nest(self, name="project/nest"):
        """A copy of the fixture that the test may spoil."""
        path = os.path.join(self.dir, name)
        shutil.copy(NEST, path)
        return self.own(path)

    def talk(self, *argv, options=(), **more):
        """A run up to the question about the secret, every other one denied."""
        talk = Talk(self, ["--rule", f"allow rx {os.path.dirname(argv[0])}", *options, "--", *argv], **more)
        q = talk.ask()
        while q["path"] != self.secret:
            talk.answer(q, answer="deny")
            q = talk.ask()
        return talk, q

    def details(self, talk, q):
        talk.send(json.dumps({"details": q["id"]}) + "\n")
        d = talk.next("details", "error")
        self.assertEqual(("details", q["id"]), (d["event"], d.get("id")), d)
        return d

    def stack_of(self, *argv, status=0, **more):
        """The details of the question about the secret; then it is answered, and the run goes on."""
        talk, q = self.talk(*argv, **more)
        d = self.details(talk, q)
        talk.answer(q, answer="allow", lifetime="once")
        done = talk.finish()
        self.assertStatus(done, status)
        self.assertEqual(1, done.report["engine"]["unwound"])
        return d


@both_users
class Programs(Stacks):
    def test_the_order_of_calls(self):
        for mode in ("call", "thread", "signal", "altstack", "deep"):
            with self.subTest(mode=mode):
                d = self.stack_of(NEST, mode, self.secret)
                names = functions(d["stack"])
                self.assertTrue(is_within(CHAIN, names), names)
                self.assertEqual(CHAIN, functions(beyond_libc(d["stack"]))[:3])
                self.assertIn("libc.so.6", d["stack"][0]["object"])
                self.assertEqual("more" if mode == "deep" else "complete", d["stack_end"])
                if mode in ("call", "signal", "altstack"):
                    self.assertIn("main", names)
                signals = [f for f in d["stack"] if f.get("signal")]
                self.assertEqual(mode in ("signal", "altstack"), len(signals) == 1)

    @needs("nm")
    def test_offsets_are_what_addr2line_wants(self):
        symbols = subprocess.run(["nm", NEST], capture_output=True, text=True, check=True).stdout
        at = {line.split()[-1]: int(line.split()[0], 16)
              for line in symbols.splitlines() if len(line.split()) == 3}
        d = self.stack_of(NEST, "call", self.secret)
        for frame in beyond_libc(d["stack"])[:3]:
            self.assertEqual(NEST, frame["object"])
            self.assertEqual(at[frame["function"]], frame["object_offset"] - frame["offset"])

    def test_static(self):
        d = self.stack_of(fixture("unwind_nest_static"), "call", self.secret)
        self.assertTrue(is_within(CHAIN + ["main"], functions(d["stack"])), d)

    @needs("strip")
    def test_stripped_has_places_and_no_names(self):
        path = self.nest()
        subprocess.run(["strip", path], check=True)
        own = [f for f in self.stack_of(path, "call", self.secret)["stack"] if f["object"] == path]
        whole = [f for f in self.stack_of(NEST, "call", self.secret)["stack"] if f["object"] == NEST]
        self.assertEqual({None}, set(functions(own)))
        self.assertEqual([f["object_offset"] for f in whole], [f["object_offset"] for f in own])

    @needs("gcc")
    def test_32_bit(self):
        path = os.path.join(self.project, "nest32")
        source = os.path.join(os.environ["SOURCE_DIR"], "tests/fixtures/unwind_nest.c")
        made = subprocess.run(["gcc", "-m32", "-w", "-D_GNU_SOURCE", "-o", path, source, "-lpthread"],
                              capture_output=True, check=False)
        if made.returncode:
            self.skipTest("no 32-bit compiler here")
        d = self.stack_of(path, "call", self.secret)
        self.assertEqual("32-bit", d["stack_end"])
        self.assertEqual("[vdso]", d["stack"][0]["object"])
        self.assertIn("libc.so.6", d["stack"][1]["object"])
        # glibc 2.41 makes it in an inner function, which has no name in the stripped library.
        self.assertIn("open", d["stack"][1]["function"] or "open")

    def test_code_of_no_file(self):
        d = self.stack_of(NEST, "jit", self.secret)
        self.assertIsNone(d["stack"][0]["object"])
        self.assertGreater(d["stack"][0]["ip"], 0)
        self.assertEqual(["by_jit", "main"], functions(d["stack"])[1:3])

    def test_python(self):
        d = self.stack_of("/usr/bin/python3", "-c", f"open({self.secret!r})")
        self.assertIn("libc.so.6", d["stack"][0]["object"])
        self.assertIn("python3", " ".join(f["object"] or "" for f in d["stack"][1:]))

    @needs("node")
    def test_node(self):
        d = self.stack_of(shutil.which("node"), "-e", f"require('fs').readFileSync({self.secret!r})")
        self.assertGreater(len(d["stack"]), 3)
        self.assertIn("node", " ".join(f["object"] or "" for f in d["stack"]))

    @needs("go")
    def test_go(self):
        self.write("project/go.mod", "module x\n")
        self.write("project/x.go", "package main\nimport \"os\"\n//go:noinline\nfunc inner(p string) { "
                   "os.ReadFile(p) }\nfunc main() { inner(os.Args[1]) }\n")
        made = self.native("go", "build", "-o", "x", "x.go", timeout=120,
                           env={**self.env, "CGO_ENABLED": "0", "GOFLAGS": "-mod=mod", "GOPROXY": "off"})
        self.assertStatus(made)
        d = self.stack_of(os.path.join(self.project, "x"), self.secret)
        self.assertTrue(is_within(["main.inner", "main.main"], functions(d["stack"])), d)


@both_users
class Requests(Stacks):
    def test_nothing_is_unwound_unless_somebody_asks(self):
        talk, q = self.talk(NEST, "call", self.secret)
        talk.answer(q, answer="allow", lifetime="once")
        done = talk.finish()
        self.assertEqual(0, done.report["engine"]["unwound"])
        self.assertNotIn("stack", json.dumps(done.report))

    def test_asked_twice_is_looked_up_once(self):
        talk, q = self.talk(NEST, "call", self.secret)
        first, second = self.details(talk, q), self.details(talk, q)
        self.assertEqual(first["stack"], second["stack"])
        talk.answer(q, answer="deny")
        self.assertEqual(1, talk.finish().report["engine"]["unwound"])

    def test_a_bad_request_leaves_the_question_open(self):
        talk, q = self.talk(NEST, "call", self.secret)
        for bad in (0, -1, "1", 99, None, [1]):
            talk.send(json.dumps({"details": bad}) + "\n")
            self.assertTrue(talk.next("error")["message"])
        talk.answer(q, answer="allow", lifetime="once")
        self.assertStatus(talk.finish())

    def test_one_that_died_meanwhile(self):
        one = f"{NEST} call {self.secret}"
        talk, q = self.talk("/bin/sh", "-c", f"{one}; {one}; true",
                            options=("--rule", f"allow rx {os.path.dirname(NEST)}"))
        os.kill(q["pid"], 9)
        self.assertEqual("exited", talk.next("cancel")["reason"])
        second = talk.ask()
        talk.send(json.dumps({"details": q["id"]}) + "\n")
        self.assertIn("no such question", talk.next("error")["message"])
        self.assertTrue(self.details(talk, second)["stack"])
        talk.answer(second, answer="deny")
        self.assertStatus(talk.finish())

    def test_details_are_a_feature(self):
        talk, q = self.talk(NEST, "call", self.secret)
        self.assertIn("details", talk.events[0]["features"])
        talk.answer(q, answer="deny")
        talk.finish()

    def test_stacks_in_the_report(self):
        rule = f"allow rx {os.path.dirname(NEST)}"
        for mode in ("report", "retry"):
            with self.subTest(mode=mode):
                done = self.run_report("--stacks", "--on-denial", mode, "--rule", rule, "--",
                                       "sh", "-c", f"{NEST} call {self.secret}; {NEST} call {self.secret}")
                denial, = done.denials(self.secret)
                self.assertEqual(2, denial["count"])
                self.assertTrue(is_within(CHAIN, functions(denial["stack"])), denial)
                self.assertEqual("complete", denial["stack_end"])
                self.assertEqual(len(done.report["denials"]), done.report["engine"]["unwound"])
        done = self.hold("--stacks", "--rule", rule, "--", NEST, "call", self.secret, answer=deny)
        denial, = done.denials(self.secret)
        self.assertTrue(is_within(CHAIN, functions(denial["stack"])), denial)
        told, = [e for e in done.events if e["event"] == "denied" and e["path"] == self.secret]
        self.assertEqual(denial["stack"], told["stack"])


@both_users
class Hostile(Stacks):
    """No crash, no hang, and the question is still answered."""

    def test_stacks_that_are_none(self):
        for mode in ("rsp", "low", "cycle", "hole", "tables"):
            with self.subTest(mode=mode):
                d = self.stack_of(NEST, mode, self.secret)
                self.assertGreater(len(d["stack"]), 0)
                self.assertIn(d["stack_end"], ("lost", "more"))
        for seed in range(4):
            with self.subTest(seed=seed):
                self.assertTrue(self.stack_of(NEST, "noise", str(seed), self.secret)["stack"])
                self.assertTrue(self.stack_of(NEST, "frames", str(seed), self.secret)["stack"])

    def test_a_crowd_of_mappings_hides_nothing(self):
        d = self.stack_of(NEST, "crowd", self.secret)
        self.assertEqual(CHAIN, functions(beyond_libc(d["stack"]))[:3])

    def paused(self, path):
        """A run of the copy that waits for a line before it goes for the secret."""
        talk = Talk(self, ["--", path, "pause", self.secret], stdin=subprocess.PIPE)
        self.assertTrue(wait_until(lambda: self.runs(talk, path)))
        return talk

    def runs(self, talk, path):
        """Its own file is mapped: from here on it may be replaced."""
        for child in self.children_of(talk.process):
            try:
                if os.readlink(f"/proc/{child}/exe") == path:
                    return True
            except FileNotFoundError:
                pass
        return False

    def go_on(self, talk):
        talk.process.stdin.write(b"\n")
        talk.process.stdin.flush()
        q = talk.ask()
        self.assertEqual(self.secret, q["path"])
        d = self.details(talk, q)
        talk.answer(q, answer="allow", lifetime="once")
        self.assertStatus(talk.finish())
        self.assertEqual("complete", d["stack_end"])
        return [f for f in d["stack"] if f["object"] and "nest" in f["object"]]

    def replaced(self, replace):
        """The frames of a program whose file was replaced while it ran; root can still name them."""
        path = self.nest()
        talk = self.paused(path)
        os.unlink(path)
        replace(path)
        frames = self.go_on(talk)
        self.assertGreaterEqual(len(frames), 3, frames)
        self.assertTrue(all(0x1000 < f["object_offset"] < 0x10000 for f in frames), frames)
        root = self.uid == 0
        self.assertEqual(CHAIN if root else [None] * 3, functions(frames)[:3], frames)

    def test_a_deleted_object(self):
        self.replaced(lambda path: None)

    def test_a_fifo_in_its_place(self):
        self.replaced(os.mkfifo)

    def test_a_symlink_to_something_endless_in_its_place(self):
        self.replaced(lambda path: os.symlink("/dev/zero", path))

    def test_another_program_in_its_place(self):
        self.replaced(lambda path: shutil.copy(NEST, path))

    def test_a_directory_in_its_place(self):
        self.replaced(os.mkdir)

    def test_a_huge_sparse_file(self):
        path = self.nest()
        os.truncate(path, 1 << 40)
        stack = self.stack_of(path, "call", self.secret)["stack"]
        self.assertEqual(CHAIN, functions(beyond_libc(stack))[:3])

    def section_headers(self, data):
        offset, = struct.unpack_from("<Q", data, 40)
        size, count = struct.unpack_from("<HH", data, 58)
        return [offset + i * size for i in range(count)]

    def test_sections_that_lie(self):
        with open(NEST, "rb") as f:
            good = f.read()
        for what in range(6):
            data = bytearray(good)
            if what == 0:
                struct.pack_into("<Q", data, 40, 1 << 63)  # the section headers are nowhere
            if what == 1:
                struct.pack_into("<H", data, 60, 0xffff)  # ... or there are too many
            for at in self.section_headers(good):
                kind, = struct.unpack_from("<I", data, at + 4)
                if what == 2 and kind == 2:  # the symbols are beyond the end
                    struct.pack_into("<QQ", data, at + 24, 1 << 62, 1 << 62)
                if what == 3 and kind == 2:  # they name themselves
                    struct.pack_into("<I", data, at + 40, 0xffffffff)
                if what == 4 and kind == 3:  # names are nowhere
                    struct.pack_into("<QQ", data, at + 24, (1 << 64) - 8, 1 << 63)
                if what == 5 and kind == 2:  # a part of a symbol
                    struct.pack_into("<Q", data, at + 32, 7)
            path = self.nest()
            with open(path, "wb") as f:
                f.write(data)
            with self.subTest(what=what):
                frames = beyond_libc(self.stack_of(path, "call", self.secret)["stack"])
                self.assertEqual([path] * 3, [f["object"] for f in frames[:3]])

    def endless(self):
        """The copy with symbols each of which is nearer than the last, and has a name to be read."""
        path = self.nest()
        with open(path, "rb") as f:
            data = bytearray(f.read())
        symbols = b"".join(struct.pack("<IBBHQQ", 1, 0x12, 0, 1, i // 1024, 1 << 40)
                           for i in range(1 << 20))
        for at in self.section_headers(data):
            if struct.unpack_from("<I", data, at + 4)[0] == 2:
                struct.pack_into("<QQ", data, at + 24, len(data), len(symbols))
        with open(path, "wb") as f:
            f.write(data + symbols)
        return path

    def test_a_symbol_table_that_takes_for_ever_ends_in_time(self):
        path = self.endless()
        d = self.stack_of(path, "call", self.secret)
        self.assertEqual("time", d["stack_end"])
        self.assertEqual([path] * 3, [f["object"] for f in beyond_libc(d["stack"])[:3]])

    def send_to_helper(self, warder, before, sig, found):
        """The first new child of warder's gets the signal, once its walls are up."""
        def helper():
            with open(f"/proc/{warder}/task/{warder}/children", encoding="ascii") as f:
                return [p for p in f.read().split() if int(p) not in before]

        def is_locked_down():
            with open(f"/proc/{pid}/status", encoding="ascii") as f:
                return "\nSeccomp:\t2\n" in f.read()
        if wait_until(helper):
            pid, = helper()
            if wait_until(is_locked_down) and os.getuid() == 0:
                found.extend(os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd"))
            os.kill(int(pid), sig)

    def look_at_what_it_held(self, warder, asked, path, found):
        """The memory and the objects, and nothing of the supervisor's."""
        self.assertIn(f"/proc/{asked}/mem", found)
        self.assertIn(path, found)
        own = {os.readlink(f"/proc/{warder}/fd/{fd}") for fd in os.listdir(f"/proc/{warder}/fd")}
        self.assertEqual(set(), own & set(found))

    def test_a_helper_that_crashes_or_stands_still(self):
        path = self.endless()
        for sig in (signal.SIGSEGV, signal.SIGSTOP):
            with self.subTest(signal=sig):
                talk, q = self.talk(path, "call", self.secret)
                held, found = self.children_of(talk.process), []
                sender = threading.Thread(target=self.send_to_helper,
                                          args=(talk.process.pid, held, sig, found))
                sender.start()
                d = self.details(talk, q)
                sender.join()
                self.assertEqual("time", d["stack_end"])
                self.assertGreater(len(d["stack"]), 0)
                self.assertEqual(held, self.children_of(talk.process), "the helper is left")
                if os.getuid() == 0:  # its descriptors are not for its own user to see
                    self.look_at_what_it_held(talk.process.pid, q["pid"], path, found)
                talk.answer(q, answer="allow", lifetime="once")
                self.assertStatus(talk.finish())

    def test_names_that_move_a_terminal_stay_data(self):
        path = os.path.join(self.project, "nest\x1b[2J\n\udcff")
        shutil.copy(NEST, path)
        self.own(path)
        d = self.stack_of(path, "call", self.secret)
        self.assertEqual(CHAIN, functions(beyond_libc(d["stack"]))[:3])
        self.assertTrue(beyond_libc(d["stack"])[0]["object_b64"])


if __name__ == "__main__":
    main()
