#!/usr/bin/env python3
"""sendmsg and sendmmsg: held to the connect rules where they follow an address to a path, else as without warder."""

import array
import os
import socket
import struct
import subprocess
import threading
import unittest

from run_help import WARDER, RunCase, both_users, counts_by_chance, fixture, main, needs

CALLS = fixture("message_calls")
WAYS = ("64", "32", "socketcall") if os.uname().machine == "x86_64" else ("64",)
PYTHON = "/usr/bin/python3"  # not one of the tester's own
# Rows about a path that leads to somebody, who is out of reach without a rule.
TO_PATHS = ("a path", "a path, of a raw socket", "a path, no signal", "nothing to a path", "a link",
            "another type", "closed", "connected, to another", "several", "the rest")


class MessageCase(RunCase):
    """Datagram sockets in `outside`, whose owner is the test."""

    def setUp(self):
        super().setUp()
        self.sockets = {}
        for name, kind in (("dgram", socket.SOCK_DGRAM), ("other", socket.SOCK_DGRAM),
                           ("closed", socket.SOCK_DGRAM), ("stream", socket.SOCK_STREAM)):
            s = self.sockets[name] = socket.socket(socket.AF_UNIX, kind)
            self.addCleanup(s.close)
            s.bind(self.there(name))
            s.setblocking(False)
            os.chmod(self.there(name), 0 if name == "closed" else 0o777)
        self.sockets["stream"].listen(10)
        os.symlink("dgram", self.there("link"))

    def there(self, name):
        return os.path.join(self.outside, name)

    def received(self, name="dgram"):
        """All that has come, which makes room for more."""
        found = []
        try:
            while True:
                found.append(self.sockets[name].recv(1000))
        except BlockingIOError:
            return found

    def python(self, text, *args, rules=None, **more):
        rules = ["--rule", f"allow connect {self.outside}"] if rules is None else rules
        return self.run_report(*rules, "--", PYTHON, "-c", text, *args, **more)


@both_users
class Messages(MessageCase):
    def native_rows(self, way):
        done = self.native(CALLS, way, self.outside)
        self.assertStatus(done)
        return done.out.splitlines(), self.received(), self.received("other")

    def test_as_without(self):
        for way in WAYS:
            wanted, *arrived = self.native_rows(way)
            got = self.run_report("--rule", f"allow connect {self.outside}", "--", CALLS, way, self.outside)
            self.assertStatus(got)
            # Root's command has no right to another's name.
            wanted = [w.replace("somebody else ok 11", "somebody else EPERM") for w in wanted]
            self.assertEqual(wanted, got.out.splitlines(), f"{way}{got}")
            self.assertEqual(arrived, [self.received(), self.received("other")], way)
            self.assertEqual([], got.denials(verdict="sandbox"), got)

    def test_refused_outside(self):
        for way in WAYS:
            wanted, *_ = self.native_rows(way)
            wanted = [w.replace("somebody else ok 11", "somebody else EPERM") for w in wanted]
            got = self.run_report("--", CALLS, way, self.outside)
            self.assertStatus(got)
            differ = {a.rsplit(" ok ")[0].rsplit(" E")[0]: b for a, b in zip(wanted, got.out.splitlines()) if a != b}
            for what, line in differ.items():
                if what in TO_PATHS:
                    self.assertEqual(f"{what} EACCES", line, way)
                else:  # without a connection, and what fails of itself
                    self.assertIn(what.strip().split(",")[0], ("connect", "connected", "shut down", "11 bytes",
                                                               "out of band"), differ)
            # To "closed" a user may not send anyway; the rest was missing.
            wanted = set(TO_PATHS) - {"the rest"} - ({"closed"} if self.uid else set())
            self.assertEqual(wanted, set(differ) & set(TO_PATHS), differ)
            self.assertEqual([[], []], [self.received(), self.received("other")])
            [denial] = got.denials(self.there("other"))
            self.assertEqual((["connect"], "sandbox"), (denial["access"], denial["verdict"]))
            self.assertEqual([], got.denials(self.there("missing")), got)

    def test_asked_in_place(self):
        text = ("import socket, sys\n"
                "s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
                "for name in sys.argv[1:]:\n"
                " try: print(s.sendmsg([b'a ', b'message'], [], 0, name))\n"
                " except OSError as e: print(e.strerror)\n")
        done = self.hold("--", PYTHON, "-c", text, self.there("dgram"), self.there("other"),
                         answer=lambda q: {"answer": "allow" if q["path"].endswith("dgram") else "deny",
                                           "lifetime": "once", "scope": 0})
        self.assertEqual("9\nPermission denied\n", done.out, done)
        self.assertEqual([(["connect"], "sendmsg")] * 2, [(q["access"], q["call"]) for q in done.asked])
        self.assertEqual([[b"a message"], []], [self.received(), self.received("other")])

    def test_several_some_of_which_are_allowed(self):
        """Those before the refused one go; the next call hears of it."""
        done = self.run_report("--rule", f"allow connect {self.there('dgram')}",
                               "--rule", f"allow connect {self.there('other')}",
                               "--rule", f"deny connect {self.there('other')} exact", "--", CALLS, "64", self.outside)
        self.assertIn("several ok 1\n  11 bytes\n", done.out, done)
        self.assertEqual([], self.received("other"))

    def test_threads(self):
        """The program has many, some of which never sleep."""
        done = self.python(
            "import socket, sys, threading\n"
            "over = False\n"
            "def spin():\n"
            " while not over: pass\n"
            "for i in range(3): threading.Thread(target=spin, daemon=True).start()\n"
            "event = threading.Event()\n"
            "threading.Thread(target=event.wait, daemon=True).start()\n"
            "s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
            "print(s.sendmsg([b'one'], [], 0, sys.argv[1]))\n"
            "t = threading.Thread(target=lambda: print(s.sendmsg([b'two'], [], 0, sys.argv[1])))\n"
            "t.start(); t.join(); over = True\n", self.there("dgram"))
        self.assertEqual("3\n3\n", done.out, done)
        self.assertEqual([b"one", b"two"], self.received())

    def test_children_and_other_programs(self):
        text = ("import os, socket, subprocess, sys\n"
                "s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
                "if not os.fork():\n"
                " try: s.sendmsg([b'x'], [], 0, sys.argv[1])\n"
                " except OSError as e: print(e.strerror, flush=True)\n"
                " os._exit(0)\n"
                "os.wait()\n"
                "s.set_inheritable(True)\n"
                "subprocess.run([sys.executable, '-c', sys.argv[2], str(s.fileno()), sys.argv[1]], close_fds=False)\n")
        child = ("import socket, sys\n"
                 "try: socket.socket(fileno=int(sys.argv[1])).sendmsg([b'x'], [], 0, sys.argv[2])\n"
                 "except OSError as e: print(e.strerror, flush=True)\n")
        done = self.python(text, self.there("dgram"), child, rules=[])
        self.assertEqual("Permission denied\n" * 2, done.out, done)
        self.assertEqual([], self.received())

    def test_one_that_was_there_before(self):
        """Of the user's own, as standard input: nothing is sent by it, either."""
        s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(s.close)
        text = ("import socket, sys\n"
                "try: print(socket.socket(fileno=0).sendmsg([b'x'], [], 0, sys.argv[1]))\n"
                "except OSError as e: print(e.strerror)\n"
                "a, b = socket.socketpair()\n"
                "print(a.sendmsg([b'as ever']), b.recv(10))\n")
        for rules, expected in (([], "Permission denied"), (None, "1")):
            done = self.python(text, self.there("dgram"), rules=rules, stdin=s)
            self.assertEqual(f"{expected}\n7 b'as ever'\n", done.out, done)
        self.assertEqual([b"x"], self.received())

    def test_on_an_old_kernel(self):
        text = ("import socket, sys\n"
                "s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
                "for name in sys.argv[1:]:\n"
                " try: print(s.sendmsg([b'x'], [], 0, name))\n"
                " except OSError as e: print(e.strerror)\n")
        done = self.native(fixture("old_kernel"), WARDER, "run", "--report", self.report_file, "--rule",
                           f"allow connect {self.there('dgram')}", "--", PYTHON, "-c", text, self.there("dgram"),
                           self.there("other"))
        self.assertEqual("1\nPermission denied\n", done.out, done)
        self.assertTrue(any("watches its messages" in d for d in self.read_report()["engine"]["degraded"]))


# sendmmsg(2) of `count` messages; argv: count, then how many bytes each.
MANY = """
import ctypes, os, socket, sys, threading
first = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)  # from here on messages wait at the door
libc = ctypes.CDLL(None, use_errno=True)
class iovec(ctypes.Structure): _fields_ = [("base", ctypes.c_char_p), ("len", ctypes.c_size_t)]
class header(ctypes.Structure): _fields_ = [("name", ctypes.c_void_p), ("name_len", ctypes.c_uint), ("iov", ctypes.POINTER(iovec)),
    ("n", ctypes.c_size_t), ("control", ctypes.c_void_p), ("control_len", ctypes.c_size_t), ("flags", ctypes.c_int)]
class many(ctypes.Structure): _fields_ = [("header", header), ("sent", ctypes.c_uint)]
count, sizes = int(sys.argv[1]), [int(n) for n in sys.argv[2:]]
here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
got = []
def read():
    while data := there.recv(1 << 20): got.append(data)
reader = threading.Thread(target=read)
reader.start()
all = (many * count)()
parts = [iovec(bytes([97 + i % 26]) * sizes[i % len(sizes)], sizes[i % len(sizes)]) for i in range(count)]
for m, part in zip(all, parts): m.header.iov, m.header.n = ctypes.pointer(part), 1
n = libc.sendmmsg(here.fileno(), all, count, 0)
here.close()
reader.join()
sent = b"".join(part.base[:m.sent] for m, part in zip(all[:max(n, 0)], parts))
print(n if count > 1024 else "", sent == b"".join(got), all[count - 1].sent if n == count else "")
"""

# 4,000 descriptors in twenty control messages of one sendmsg(2).
MANY_PASSED = """
import array, errno, socket
a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
try:
    a.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0] * 200))] * 20)
except OSError as e:
    print(errno.errorcode[e.errno])
"""


@both_users
class Bounds(MessageCase):
    def test_so_many_messages_in_one_call(self):
        for count in ("1500", "4000"):
            native = self.native(PYTHON, "-c", MANY, count, "1")
            self.assertStatus(native)
            self.assertEqual("1024 True \n", native.out)
            self.assertEqual(native.out, self.python(MANY, count, "1").out)

    def test_one_that_is_sent_in_part_is_the_last(self):
        """What is longer than we take at once: nothing of another message comes between."""
        done = self.python(MANY, "2", str(3 << 20), "5")
        self.assertStatus(done)
        self.assertRegex(done.out, "^ True")

    def test_so_many_descriptors_in_one_message(self):
        run = [WARDER, "run", "-q", "--", PYTHON, "-c", MANY_PASSED]
        for argv in (run[4:], run):
            done = self.native("bash", "-c", 'ulimit -n 1024 && exec "$@"', "-", *argv)
            self.assertEqual("EINVAL\n", done.out, done)


@both_users
class Programs(MessageCase):
    def test_a_syslog_handler(self):
        done = self.python("import logging.handlers, sys\n"
                           "h = logging.handlers.SysLogHandler(sys.argv[1])\n"
                           "logging.getLogger().addHandler(h)\n"
                           "logging.warning('from a handler')\n", self.there("dgram"))
        self.assertStatus(done)
        self.assertTrue(any(b"from a handler" in m for m in self.received()), done)

    @needs("/usr/bin/logger")
    def test_logger(self):
        done = self.run_report("--rule", f"allow connect {self.outside}", "--",
                               "/usr/bin/logger", "--socket", self.there("dgram"), "from logger")
        self.assertStatus(done)
        self.assertTrue(any(b"from logger" in m for m in self.received()), done)

    @needs("/usr/bin/systemd-notify")
    def test_a_service_is_ready(self):
        for rules, arrived in ((["--rule", f"allow connect {self.outside}"], True), ([], False)):
            self.env["NOTIFY_SOCKET"] = self.there("dgram")
            self.run_report(*rules, "--", "/usr/bin/systemd-notify", "--no-block", "--ready")
            self.assertEqual(arrived, any(b"READY=1" in m for m in self.received()), rules)

    def test_an_entry_for_the_journal(self):
        """A big one goes as a sealed file."""
        done = self.python("import array, os, socket, sys\n"
                           "fd = os.memfd_create('entry', os.MFD_ALLOW_SEALING)\n"
                           "os.write(fd, b'a big entry')\n"
                           "s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
                           "s.sendmsg([], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [fd]))], 0, sys.argv[1])\n",
                           self.there("dgram"))
        self.assertStatus(done)
        _, [(_, _, data)], *_ = self.sockets["dgram"].recvmsg(10, 100)
        fd = array.array("i", data)[0]
        self.addCleanup(os.close, fd)
        self.assertEqual(b"a big entry", os.pread(fd, 100, 0))

    def test_who_sent_it(self):
        self.sockets["dgram"].setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        done = self.python("import socket, sys\n"
                           "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendmsg([b'x'], [], 0, sys.argv[1])\n",
                           self.there("dgram"))
        self.assertStatus(done)
        _, [(_, _, data)], *_ = self.sockets["dgram"].recvmsg(10, 100)
        self.assertEqual((self.uid, self.uid), struct.unpack("3i", data)[1:])


# As somebody else than warder; prints what became of each message that names its sender, or not.
SENDERS = r"""
import os, socket, struct, sys
dgram, stream = sys.argv[1:]
IDS = {"root": (0, 0, 0), "dropped": (65534, 65534, 65534), "effective": (0, 65534, 0), "saved": (65534, 65534, 0),
       "real": (65534, 0, 0), "mixed": (1000, 65534, 1001), "three": (1000, 65534, 0)}
CLAIMS = (None, 0, 1000, 1001, 65534, 4242, -1)


def control(claim, who=lambda c: (os.getpid(), c, c)):
    return [] if claim is None else [(socket.SOL_SOCKET, socket.SCM_CREDENTIALS, struct.pack("3i", *who(claim)))]


def tell(what, send):
    try: print(what, send(what.encode()), flush=True)
    except OSError as e: print(what, e.strerror, flush=True)


def tell_all(name):
    d = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)  # from now on all of its messages are watched
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    s.connect(stream)
    tell(f"{name} sendto", lambda m: d.sendto(m, dgram))
    for claim in CLAIMS:
        tell(f"{name} dgram {claim}", lambda m: d.sendmsg([m], control(claim), 0, dgram))
        tell(f"{name} stream {claim}", lambda m: s.sendmsg([m], control(claim)))
    for what, who in (("user", lambda c: (os.getpid(), c, os.getgid())), ("group", lambda c: (os.getpid(), os.getuid(), c)),
                      ("process", lambda c: (os.getppid(), os.getuid(), os.getgid()))):
        if what != "process" or name not in ("root", "real"):  # a capability to name others
            tell(f"{name} {what}", lambda m: d.sendmsg([m], control(0, who), 0, dgram))
    rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("i", 0))
    tell(f"{name} beside a file", lambda m: d.sendmsg([m], [rights], 0, dgram))


for name, ids in IDS.items():
    if not os.fork():
        os.setgroups([])
        os.setresgid(*ids)
        os.setresuid(*ids)
        tell_all(name)
        os._exit(0)
    os.wait()
"""


@unittest.skipIf(os.getuid(), "only root becomes somebody else")
class Senders(MessageCase):
    """Whom the receiver is told of is the program, not who sends in its place."""

    def credentials(self, s):
        """Of all messages that have come, but for the process."""
        found = {}
        try:
            while (got := s.recvmsg(1000, 1000))[0]:
                data, control, *_ = got
                for _, kind, value in control:
                    if kind == socket.SCM_CREDENTIALS:
                        found[data.decode()] = struct.unpack("3i", value)[1:]
                    else:
                        os.close(struct.unpack("i", value)[0])
        except BlockingIOError:
            pass
        return found

    def told(self, run, *args):
        """How it went, and whom the receivers were told of: few datagrams are kept for a receiver who doesn't read."""
        found, over = {}, threading.Event()

        def read():
            while not over.wait(0.01):
                found.update(self.credentials(self.sockets["dgram"]))

        reader = threading.Thread(target=read)
        reader.start()
        try:
            done = run(*args, stdin=subprocess.DEVNULL)
        finally:
            over.set()
            reader.join()
        self.assertStatus(done)
        return done, found | self.credentials(self.sockets["dgram"]) | self.of_streams()

    def of_streams(self):
        found = {}
        try:
            while True:
                s, _ = self.sockets["stream"].accept()
                with s:
                    s.setblocking(False)
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
                    peer = struct.unpack("3i", s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[1:]
                    came = self.credentials(s)
                    found |= came | {"peer of " + next(iter(came)).split()[0]: peer}
        except BlockingIOError:
            return found

    def test_as_without(self):
        for name in ("dgram", "stream"):
            self.sockets[name].setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        os.chmod(self.outside, 0o755)
        argv = PYTHON, "-c", SENDERS, self.there("dgram"), self.there("stream")
        wanted, told = self.told(self.native, *argv)
        self.assertEqual((65534, 65534), told["dropped dgram None"], told)  # it does tell
        self.assertIn("dropped stream 0 Operation not permitted", wanted.out)
        got, told_here = self.told(self.run_report, "--rule", f"allow connect {self.outside}", "--", *argv)
        self.maxDiff = None
        self.assertEqual(wanted.out.splitlines(), got.out.splitlines(), got)
        self.assertEqual(told, told_here, got)


@both_users
class Attacks(MessageCase):
    def assertNoneCame(self, done):
        self.assertEqual([], self.received(), done)

    def test_a_table_of_descriptors_that_another_shares(self):
        done = self.run_report("--", CALLS, "files", self.outside)
        self.assertIn("sent EACCES", done.out, done)
        self.assertNoneCame(done)

    @counts_by_chance
    def test_a_send_that_is_on_its_way_already(self):
        done = self.run_report("--", CALLS, "race", self.outside, timeout=60)
        self.assertEqual("made 40\n", done.out, done)
        self.assertNoneCame(done)

    @counts_by_chance
    def test_an_address_or_a_descriptor_that_changes(self):
        for what in ("send", "sendfd"):
            with self.subTest(what):
                done = self.run_report("--rule", f"allow connect {self.there('dgram')}", "--", fixture("race"), what,
                                       self.there("dgram"), self.there("other"), timeout=90)
                self.assertStatus(done)
                self.assertRegex(done.out, r"worked [1-9]" if what == "send" else r"refused [1-9]", done)
                self.assertEqual([], self.received("other"), done)
                self.received()

    def test_passed_on_in_a_message(self):
        done = self.python(
            "import array, os, socket, sys\n"
            "a, b = socket.socketpair()\n"
            "if not os.fork():\n"  # it has made none: nothing of it is watched
            " a.close()\n"
            " for _, _, fds in b.recvmsg(10, 100)[1]:\n"
            "  s = socket.socket(fileno=array.array('i', fds)[0])\n"
            "  print(s.sendmsg([b'x'], [], 0, sys.argv[1]), flush=True)\n"
            " os._exit(0)\n"
            "b.close()\n"
            "s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
            "try: a.sendmsg([b'y'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [s.fileno()]))])\n"
            "except OSError as e: print(e.strerror)\n"
            "a.close(); os.wait()\n", self.there("dgram"), rules=[])
        self.assertEqual("Operation not permitted\n", done.out, done)
        self.assertTrue(any("passed on" in d.get("note", "") for d in done.report["denials"]), done)
        self.assertNoneCame(done)

    def test_taken_out_of_another_process(self):
        done = self.python("import ctypes, os, socket, sys\n"
                           "r, w = os.pipe()\n"
                           "libc = ctypes.CDLL(None, use_errno=True)\n"
                           "pid = os.fork()\n"
                           "if not pid:\n"
                           " s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
                           " os.write(w, b'%d' % s.fileno())\n"
                           " import signal; signal.pause()\n"
                           "number = int(os.read(r, 10))\n"
                           "pidfd = os.pidfd_open(pid)\n"
                           "print(libc.syscall(438, pidfd, number, 0), ctypes.get_errno())\n"
                           "os.kill(pid, 9)\n", rules=[])
        self.assertEqual("-1 1\n", done.out, done)

    def test_a_filter_of_its_own(self):
        """It could say that it is watched: it gets no such socket."""
        done = self.python(
            "import ctypes, socket, struct, sys\n"
            "libc = ctypes.CDLL(None, use_errno=True)\n"
            "nr = {'x86_64': 41}.get(__import__('os').uname().machine, 198)\n"
            "code = struct.pack('HBBIHBBIHBBIHBBI', 0x20, 0, 0, 0, 0x15, 0, 1, nr, 6, 0, 0, 0x7ff05751, 6, 0, 0, 0x7fff0000)\n"
            "buf = ctypes.create_string_buffer(code)\n"
            "prog = struct.pack('HxxxxxxQ', 4, ctypes.addressof(buf))\n"
            "print(libc.prctl(22, 2, prog, 0, 0))\n"
            "try: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
            "except OSError as e: print(e.strerror)\n"
            "socket.socket(socket.AF_UNIX).close()\n", rules=[])
        self.assertEqual("0\nPermission denied\n", done.out, done)
        self.assertTrue(any("datagram socket" in n for n in done.report["engine"]["notes"]), done.report["engine"])


if __name__ == "__main__":
    main()
