#!/usr/bin/env python3
"""A program that confines itself with Landlock inside the wall stays confined: the broker is no way round."""

import os

from run_help import RunCase, both_users, main, needs

# confine() refuses itself all reading and making of files; sys.argv[1] is the file to be tried.
PROGRAM = """
import ctypes, os, struct, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
path = sys.argv[1]
def confine(fd=None):
    how = struct.pack("Q", 1 << 2 | 1 << 8)  # READ_FILE, MAKE_REG
    ruleset = libc.syscall(444, how, len(how), 0) if fd is None else fd
    libc.prctl(38, 1, 0, 0, 0)
    return libc.syscall(446, ruleset, 0)
def attempt(path=path):
    try:
        os.close(os.open(path, os.O_CREAT | os.O_RDWR))
        print("opened", flush=True)
    except OSError as e:
        print(e.strerror, flush=True)
"""
NO = "Permission denied\n"


@both_users
@needs("/usr/bin/python3")
class OwnLandlock(RunCase):
    def program(self, text):
        # The repository's own rules leave the project's top to the broker.
        for name in ("HEAD", "config", "objects/x", "refs/x"):
            self.write(f"project/.git/{name}", "")
        return self.write("project/.hidden/p.py", PROGRAM + text)

    def attempt(self, text, path="new", run=None):
        program = self.program(text)
        args = ["--", "/usr/bin/python3", "-IB", program, path]
        return (run or self.run_report)(*args)

    def test_without_it_the_broker_makes_the_file(self):
        done = self.attempt("attempt()")
        self.assertEqual("opened\n", done.out, done)
        self.assertGreater(done.report["engine"]["brokered"], 0)

    def test_what_it_refuses_itself_stays_refused(self):
        for name, text in (("itself", "confine(); attempt()"),
                           ("a child", "confine()\nif os.fork() == 0:\n    attempt(); os._exit(0)\nos.wait()"),
                           ("a thread's child", "t = threading.Thread(target=lambda: (confine(), attempt()))\n"
                            "t.start(); t.join()"),
                           ("a later thread", "confine(); t = threading.Thread(target=attempt); t.start(); t.join()")):
            with self.subTest(name):
                done = self.attempt(text)
                self.assertEqual(NO, done.out, done)
                self.assertFalse(os.path.exists(f"{self.project}/new"))
                [denial] = done.denials(f"{self.project}/new")
                self.assertEqual("other", denial["verdict"])
                self.assertIn("sandbox of its own", denial["note"])

    def test_only_the_thread_and_its_children_are_confined(self):
        done = self.attempt("t = threading.Thread(target=confine); t.start(); t.join(); attempt()")
        self.assertEqual("opened\n", done.out, done)

    def test_a_failed_try_confines_nobody(self):
        for text in ("confine(999); attempt()", "confine(-1); attempt()"):
            with self.subTest(text):
                done = self.attempt(text)
                self.assertEqual("opened\n", done.out, done)

    def test_nothing_is_asked_that_a_yes_could_not_give(self):
        secret = self.write("outside/secret", "s")
        done = self.attempt("confine(); attempt()", secret, run=self.hold)
        self.assertEqual(NO, done.out, done)
        self.assertNothingAsked(done)
        [denial] = done.denials(secret)
        self.assertEqual(("sandbox", "none"), (denial["verdict"], denial["by"]))


# confine() takes what a ruleset handles beside files; connect() says what came of it.
CONNECTIONS = """
import ctypes, os, socket, struct, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
name = "\\0own-landlock-%d" % os.getpid()
def listener(family, address):
    s = socket.socket(family)
    s.bind(address)
    s.listen(9)
    return s
tcp = listener(socket.AF_INET, ("127.0.0.1", 0))
abstract = listener(socket.AF_UNIX, name)
def allow(r, ports):
    for port in ports:
        libc.syscall(445, r, 2, struct.pack("QQ", 2, port), 0)
def ruleset(fs=0, net=0, scoped=0, ports=()):
    how = struct.pack("QQQ", fs, net, scoped)
    r = libc.syscall(444, how, len(how), 0)
    allow(r, ports)
    return r
def enter(r):
    libc.prctl(38, 1, 0, 0, 0)
    if r < 0 or libc.syscall(446, r, 0):
        print("no such Landlock")
def confine(*a, **k):
    enter(ruleset(*a, **k))
def connect():
    for family, address in ((socket.AF_INET, tcp.getsockname()), (socket.AF_UNIX, name)):
        try:
            socket.socket(family).connect(address)
            print("connected", flush=True)
        except OSError as e:
            print(e.strerror, flush=True)
"""


@both_users
@needs("/usr/bin/python3")
class OwnConnections(RunCase):
    """warder makes connections in the program's place: not those that its own sandbox may refuse."""

    def test_as_its_own_sandbox_says(self):
        yes, tcp, abstract = "connected\n", NO, "Operation not permitted\n"
        port = "[tcp.getsockname()[1]]"
        rows = {"confine(net=2); connect()": tcp + yes,
                f"confine(net=2, ports={port}); connect()": yes + yes,
                f"confine(net=2, ports={port})\nif os.fork() == 0:\n    connect(); os._exit(0)\nos.wait()": yes + yes,
                "confine(net=2, ports=[1]); connect()": tcp + yes,
                f"confine(net=2, ports={port}); confine(net=2, ports=[1]); connect()": tcp + yes,
                f"confine(net=2, ports=[1, *{port}]); confine(net=2, ports={port}); connect()": yes + yes,
                f"confine(net=2, ports={port}); confine(fs=1 << 8); connect()": yes + yes,
                f"confine(net=1, ports=[]); connect()": yes + yes,
                f"r = ruleset(net=2, ports=[1]); enter(r); allow(r, {port}); connect()": tcp + yes,
                f"t = threading.Thread(target=lambda: (confine(net=2, ports={port}), connect())); t.start(); t.join();"
                " confine(net=2)": yes + yes,
                "confine(scoped=1); connect()": yes + abstract,
                "confine(fs=1 << 8); connect()": yes + yes,
                "confine(net=2)\nif os.fork() == 0:\n    connect(); os._exit(0)\nos.wait()": tcp + yes,
                "t = threading.Thread(target=lambda: confine(net=2)); t.start(); t.join(); connect()": yes + yes}
        for text, expected in rows.items():
            with self.subTest(text):
                argv = ["/usr/bin/python3", "-IBc", CONNECTIONS + text]
                native = self.native(*argv)
                if "no such Landlock" in native.out:
                    self.skipTest("this kernel's Landlock knows no connections")
                self.assertEqual(expected, native.out, native)
                done = self.run_report("--", *argv)
                self.assertEqual(expected, done.out, done)
                notes = [d.get("note", "") for d in done.report["denials"] if d["call"] == "connect"]
                self.assertLessEqual(any("of its own" in n for n in notes), expected != yes + yes, done)

    def test_many_one_after_the_other(self):
        """Each has a sandbox, and no more are kept than there are."""
        text = CONNECTIONS + ("port = tcp.getsockname()[1]\n"
                              "for i in range(80):\n"
                              "    if os.fork() == 0:\n"
                              "        confine(net=2, ports=[port + i % 2])\n"
                              "        s = socket.socket()\n"
                              "        os._exit(s.connect_ex(tcp.getsockname()))\n"
                              "    print(os.waitstatus_to_exitcode(os.wait()[1]), end=' ')\n"
                              "    if not i % 2: tcp.accept()\n")
        native = self.native("/usr/bin/python3", "-IBc", text)
        if "no such Landlock" in native.out:
            self.skipTest("this kernel's Landlock knows no connections")
        done = self.run_report("--", "/usr/bin/python3", "-IBc", text)
        self.assertEqual("0 13 " * 40, native.out)
        self.assertEqual(native.out, done.out, done)

    def test_more_at_a_time_than_there_is_room_for_are_told_once(self):
        text = CONNECTIONS + ("wait, done = os.pipe(); ready, say = os.pipe()\n"
                              "for i in range(90):\n"
                              "    if os.fork() == 0:\n"
                              "        os.close(done); confine(net=2); os.write(say, b'x'); os.read(wait, 1)\n"
                              "        os._exit(0)\n"
                              "for i in range(90): os.read(ready, 1)\n"
                              "os.close(done)\n"
                              "for i in range(90): os.wait()\n"
                              "print('all')\n")
        native = self.native("/usr/bin/python3", "-IBc", text)
        if "no such Landlock" in native.out:
            self.skipTest("this kernel's Landlock knows no connections")
        done = self.run_report("--", "/usr/bin/python3", "-IBc", text)
        self.assertEqual("all\n", done.out, done)
        self.assertEqual(1, done.err.count("none can be made for it"), done.err)

    def test_one_that_waits(self):
        """A connection that does not come about leaves others alone, and ends with a signal."""
        text = CONNECTIONS + ("import signal, time\n"
                              "full = socket.socket(); full.bind(('127.0.0.1', 0)); full.listen(0)\n"
                              "fill = [socket.socket() for _ in range(4)]\n"
                              "for s in fill: s.setblocking(False); s.connect_ex(full.getsockname())\n"
                              "confine(net=2, ports=[full.getsockname()[1], tcp.getsockname()[1]])\n"
                              "def caught(*_): raise TimeoutError\n"
                              "signal.signal(signal.SIGALRM, caught); signal.alarm(1)\n"
                              "t = threading.Thread(target=lambda: (time.sleep(0.3), connect())); t.start()\n"
                              "try: socket.socket().connect(full.getsockname())\n"
                              "except TimeoutError: print('ended', flush=True)\n")
        done = self.run_report("--", "/usr/bin/python3", "-IBc", text)
        self.assertEqual("connected\nconnected\nended\n", done.out, done)


if __name__ == "__main__":
    main()
