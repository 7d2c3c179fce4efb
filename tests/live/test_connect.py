#!/usr/bin/env python3
"""Connects and sends to unix sockets by path: as without warder where allowed, else refused."""

import array
import os
import socket
import struct
import threading
import time

from run_help import STORM, STORM_CALLS, RunCase, Talk, both_users, deny, fixture, main, wait_until

CALLS = fixture("connect_calls")
WAYS = ("64", "32", "socketcall") if os.uname().machine == "x86_64" else ("64",)
PYTHON = "/usr/bin/python3"  # not one of the tester's own


class ConnectCase(RunCase):
    """The sockets that connect_calls knows, in `outside`, whose owner is the test."""

    def setUp(self):
        super().setUp()
        self.sockets = {}
        for name, kind in (("stream", socket.SOCK_STREAM), ("dgram", socket.SOCK_DGRAM),
                           ("seq", socket.SOCK_SEQPACKET), ("full", socket.SOCK_STREAM),
                           ("stale", socket.SOCK_STREAM), ("closed", socket.SOCK_STREAM)):
            s = self.sockets[name] = socket.socket(socket.AF_UNIX, kind)
            self.addCleanup(s.close)
            s.settimeout(20)
            s.bind(self.there(name))
            os.chmod(self.there(name), 0 if name == "closed" else 0o777)
            if kind != socket.SOCK_DGRAM and name != "stale":
                s.listen(0 if name == "full" else 100)
        self.sockets["stale"].close()
        self.filling = socket.socket(socket.AF_UNIX)
        self.filling.connect(self.there("full"))
        self.addCleanup(self.filling.close)
        os.symlink("stream", self.there("link"))
        self.write(self.there("file"))

    def drain(self):
        """So that no send waits for a reader."""
        s = self.sockets["dgram"]
        s.setblocking(False)
        try:
            while True:
                s.recv(100)
        except BlockingIOError:
            s.settimeout(20)

    def calls(self, way, *args):
        wanted = self.native(CALLS, way, self.outside)
        self.assertStatus(wanted)
        self.drain()
        got = self.run_report(*args, "--", CALLS, way, self.outside)
        self.assertStatus(got)
        self.drain()
        return wanted, got

    def there(self, name):
        return os.path.join(self.outside, name)

    def python(self, text, *args, **more):
        """A script under warder, which may connect to what is outside."""
        return self.run_report("--rule", f"allow connect {self.outside}",
                               "--", PYTHON, "-c", text, *args, **more)


@both_users
class Connects(ConnectCase):
    def test_as_without(self):
        for way in WAYS:
            wanted, got = self.calls(way, "--rule", f"allow connect {self.outside}",
                                     "--rule", "allow connect /dev/null")
            self.assertEqual(wanted.out.splitlines(), got.out.splitlines(), way)
            self.assertEqual([], got.denials(verdict="sandbox"), got)

    def test_refused_outside(self):
        """What could work is EACCES; the rest keeps its own errno, and asks nothing."""
        for way in WAYS:
            wanted, got = self.calls(way)
            refused = ("stream", "stream now", "link", "dgram", "seqpacket", "wrong type", "stale",
                       "full now", "closed", "without its end", "again", "send", "send nothing",
                       "send wrong type")
            for native, line in zip(wanted.out.splitlines(), got.out.splitlines()):
                what, _, result = native.removesuffix(" 0").removesuffix(" 5").replace(" ok", " ok").rpartition(" ")
                self.assertEqual(f"{what} EACCES" if what in refused else native, line, way)
            self.assertEqual([["connect"]], [d["access"] for d in got.denials(self.there("stream"))])
            self.assertEqual("sandbox", got.denials(self.there("dgram"))[0]["verdict"])
            self.assertEqual([], got.denials(self.there("missing")), got)

    def test_the_connection_is_the_commands_own(self):
        """Descriptors pass through it, and the server is told the command's user."""
        told = []

        def serve():
            c, _ = self.sockets["stream"].accept()
            told.append(struct.unpack("3i", c.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)))
            r, w = os.pipe()
            os.write(w, b"through a pipe")
            os.close(w)
            c.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [r]))])
            os.close(r)
            told.append(c.recv(100))
            c.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        done = self.python(
            "import array, os, socket, sys\n"
            "s = socket.socket(socket.AF_UNIX)\n"
            "s.connect(sys.argv[1])\n"
            "m = s.recvmsg(10, 1000)\n"
            "fd = array.array('i', m[1][0][2])[0]\n"
            "print(os.read(fd, 100), s.getpeername() == sys.argv[1], s.getsockname() == '')\n"
            "s.sendmsg([b'o', b'k'])\n", self.there("stream"))
        self.assertStatus(done)
        self.assertEqual("b'through a pipe' True True\n", done.out, done)
        thread.join(10)
        self.assertEqual([(self.uid, self.uid), b"ok"], [told[0][1:], told[1]])

    def test_another_user_below_root(self):
        """Who became somebody else connects as that."""
        if os.getuid() or self.uid:
            self.skipTest("root alone can become another")
        done = self.run_report(
            "--rule", f"allow connect {self.outside}",
            "--", PYTHON, "-c",
            "import os, socket, sys\n"
            "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
            "s = socket.socket(socket.AF_UNIX)\n"
            "s.connect(sys.argv[1])\n"
            "try: socket.socket(socket.AF_UNIX).connect(sys.argv[2])\n"
            "except OSError as e: print(e.errno)\n", self.there("stream"), self.there("closed"))
        self.assertStatus(done)
        self.assertEqual("13\n", done.out, done)
        c, _ = self.sockets["stream"].accept()
        told = struct.unpack("3i", c.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        c.close()
        self.assertEqual((65534, 65534), told[1:])

    def test_a_send_arrives(self):
        done = self.python("import socket, sys\n"
                           "s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
                           "print(s.sendto(b'a message', sys.argv[1]))\n"
                           "s.connect(sys.argv[1])\n"
                           "print(s.send(b'another'))\n", self.there("dgram"))
        self.assertEqual("9\n7\n", done.out, done)
        self.assertEqual(b"a message", self.sockets["dgram"].recv(100))
        self.assertEqual(b"another", self.sockets["dgram"].recv(100))

    def test_abstract_sockets_of_others(self):
        s = socket.socket(socket.AF_UNIX)
        self.addCleanup(s.close)
        s.bind("\0warder-test-%d" % os.getpid())
        s.listen(1)
        done = self.python("import socket, sys\n"
                           "try: socket.socket(socket.AF_UNIX).connect('\\0' + sys.argv[1])\n"
                           "except OSError as e: print(e.errno)\n", "warder-test-%d" % os.getpid())
        self.assertEqual("1\n", done.out, done)  # Landlock's own answer
        self.assertEqual(["abstract" in d["note"] for d in done.denials(verdict="other")], [True], done)
        s.setblocking(False)
        self.assertRaises(BlockingIOError, s.accept)


WAITING = ("import os, signal, socket, sys, time\n"
           "def caught(*_): print('caught', flush=True)\n"
           "s = socket.socket(socket.AF_UNIX)\n")


@both_users
class Waiting(ConnectCase):
    """A connect that waits: the other side's backlog is full."""

    def waiting(self, setup, *args):
        return self.start_talk(WAITING + setup, *args)

    def start_talk(self, text, *args):
        return Talk(self, ["--rule", f"allow connect {self.outside}",
                           *args, "--", PYTHON, "-c", text, self.there("full")])

    def room(self):
        self.sockets["full"].accept()[0].close()

    def test_until_there_is_room(self):
        talk = self.waiting("print('begin', flush=True)\n"
                            "s.connect(sys.argv[1])\nprint('connected')\n")
        self.assertTrue(wait_until(lambda: "begin" in self.read("stdout")))
        time.sleep(0.3)
        self.room()
        done = talk.finish()
        self.assertEqual("begin\nconnected\n", done.out, done)

    def test_a_handler_that_raises_ends_it(self):
        talk = self.waiting("def caught(*_): raise TimeoutError\n"
                            "signal.signal(signal.SIGALRM, caught)\nsignal.alarm(1)\n"
                            "try: s.connect(sys.argv[1])\n"
                            "except TimeoutError: print('ended')\n")
        self.assertEqual("ended\n", talk.finish().out)

    def test_a_handler_with_restart_waits_on(self):
        talk = self.waiting("signal.signal(signal.SIGALRM, caught)\n"
                            "signal.siginterrupt(signal.SIGALRM, False)\nsignal.alarm(1)\n"
                            "s.connect(sys.argv[1])\nprint('connected')\n")
        time.sleep(1.5)  # until after the alarm
        self.room()
        done = talk.finish()
        self.assertEqual("caught\nconnected\n", done.out, done)

    def test_a_timeout_of_the_sockets_own(self):
        talk = self.waiting("import struct\n"
                            "s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack('ll', 0, 200000))\n"
                            "try: s.connect(sys.argv[1])\n"
                            "except BlockingIOError as e: print(e.errno)\n")
        self.assertEqual("11\n", talk.finish().out)

    def test_ended_and_killed(self):
        for sig, status in (("SIGTERM", -15), ("SIGKILL", -9)):
            talk = self.waiting("print(os.getpid(), flush=True)\n"
                                "if not os.fork():\n"
                                " time.sleep(0.5)\n"
                                f" os.kill(os.getppid(), signal.{sig})\n"
                                " os._exit(0)\n"
                                "s.connect(sys.argv[1])\n")
            self.assertEqual(status, talk.finish().status, sig)

    def test_the_time_limit_counts(self):
        talk = self.start_talk(WAITING + "s.connect(sys.argv[1])\n", "--timeout", "1")
        self.assertEqual(124, talk.finish().status)

    def test_many_threads(self):
        talk = self.start_talk(
            WAITING + "import threading\n"
            "def go(): socket.socket(socket.AF_UNIX).connect(sys.argv[1]); print('in', flush=True)\n"
            "for i in range(100): threading.Thread(target=go).start()\n")
        for _ in range(101):
            self.room()
        done = talk.finish()
        self.assertEqual("in\n" * 100, done.out, done)


@both_users
class Attacks(ConnectCase):
    def test_an_address_that_changes_in_memory(self):
        stop = threading.Event()

        def serve():
            self.sockets["stream"].settimeout(0.05)
            while not stop.is_set():
                try:
                    self.sockets["stream"].accept()[0].close()
                except TimeoutError:
                    pass

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        done = self.run_report("--rule", f"allow connect {self.there('stream')}", "--",
                               fixture("race"), "connect", self.there("stream"), self.there("full2"),
                               timeout=90)
        stop.set()
        thread.join()
        self.assertStatus(done)
        self.assertNotIn("reached", done.out)

    def test_a_signal_storm(self):
        done = self.run_report("--rule", f"allow connect {self.outside}", "--", fixture("storm"),
                               "connect", self.there("stream"), *STORM)
        self.assertEqual("failed 0 (none), caught many\n", done.out, done)


OWN = ("import os, socket, sys\n"
       "l = socket.socket(socket.AF_UNIX)\n"
       "l.bind('own.sock')\n"
       "l.listen(5)\n"
       "if not os.fork():\n"
       " l.close()\n"
       " s = socket.socket(socket.AF_UNIX)\n"
       " try: s.connect('own.sock'); print(s.recv(5), flush=True)\n"
       " except OSError as e: print(e.errno, flush=True)\n"
       " os._exit(0)\n"
       "if len(sys.argv) == 1:\n"
       " l.settimeout(10)\n"
       " l.accept()[0].send(b'hello')\n"
       "os.wait()\n")


@both_users
class Own(ConnectCase):
    """What the command's own processes listen on in the project needs no question."""

    def test_own_sockets(self):
        done = self.hold("--", PYTHON, "-c", OWN)
        self.assertStatus(done)
        self.assertEqual("b'hello'\n", done.out, done)
        self.assertNothingAsked(done)
        self.assertEqual([], done.report["denials"])

    def test_a_rule_against_it_counts(self):
        done = self.run_report("--rule", "deny connect own.sock", "--", PYTHON, "-c", OWN, "wait")
        self.assertEqual("13\n", done.out, done)

    def test_somebody_elses_in_the_project(self):
        s = socket.socket(socket.AF_UNIX)
        self.addCleanup(s.close)
        s.bind(os.path.join(self.project, "theirs.sock"))
        os.chmod(s.getsockname(), 0o777)
        s.listen(5)
        done = self.run_report("--", PYTHON, "-c", "import socket\n"
                               "try: socket.socket(socket.AF_UNIX).connect('theirs.sock')\n"
                               "except OSError as e: print(e.errno)\n")
        self.assertEqual("13\n", done.out, done)


@both_users
class Asked(ConnectCase):
    def test_held(self):
        done = self.hold("--", fixture("storm"), "connect", self.there("stream"), *STORM)
        self.assertEqual(["connect"], done.asked[0]["access"], done)
        self.assertEqual(1, len(done.asked), done)
        self.assertIn("failed 0", done.out)
        self.assertGreater(done.report["engine"]["brokered"], 1)

    def test_no(self):
        done = self.hold("--", fixture("storm"), "connect", self.there("stream"), *STORM, answer=deny)
        self.assertIn(f"failed {STORM_CALLS} (EACCES)", done.out)
        self.assertEqual(1, len(done.asked), done)


if __name__ == "__main__":
    main()
