#!/usr/bin/env python3
"""Every form of path: what is asked, what is done, what the report says, and what nothing is asked about."""

import base64
import os
import shutil
import socket

from path_help import PathCase
from run_help import TIMEOUT, WARDER, allow, both_users, deny, fixture, main

PATH_MAX = 4096


@both_users
class Names(PathCase):
    """Whatever bytes a name is made of."""

    ODD = [b"plain\xff\xc3", b"new\nline", b"esc\x1b[31m", b"'single' \"double\"", b"back\\slash\\",
           b"-rf", b"trailing ", b" leading", b"\xe2\x80\xae rtl", b"*?[x]", b"#no comment", b"~",
           b"$HOME", b"a\tb\x7f", b"\xed\xa0\x80", b"{}"]

    def setUp(self):
        super().setUp()
        self.names = [os.fsencode(self.outside) + b"/" + name for name in self.ODD]
        for name in self.names:
            self.write(os.fsdecode(name), "ODD")

    def bytes_of(self, entry, key):
        if key + "_b64" in entry:
            return base64.b64decode(entry[key + "_b64"])
        return entry[key].encode()

    def test_held_granted_and_reported_to_the_byte(self):
        done = self.ops(*(("read", name) for name in self.names))
        self.assertEqual(["ok ODD"] * len(self.names), done.said)
        self.assertEqual(self.names, [self.bytes_of(q, "path") for q in done.asked])
        self.assertEqual(self.names, [self.bytes_of(d, "path") for d in done.report["denials"]])

    def test_as_given(self):
        done = self.ops(*(("read", b"../outside/" + name) for name in self.ODD), answer=deny)
        self.assertEqual(["EACCES"] * len(self.names), done.said)
        self.assertEqual([b"../outside/" + name for name in self.ODD],
                         [self.bytes_of(d, "given") for d in done.report["denials"]])

    def test_saved_answers_are_of_just_these_names(self):
        self.assertStatus(self.native("git", "init", "-q", "."))
        done = self.ops(*(("read", name) for name in self.names), answer=allow("always"))
        self.assertEqual(len(self.names), len(done.asked))
        other = self.write("outside/other")
        done = self.ops(*(("read", name) for name in self.names), ("read", other), answer=deny)
        self.assertEqual(["ok ODD"] * len(self.names) + ["EACCES"], done.said)
        self.assertEqual([other], [q["path"] for q in done.asked])

    def test_both_names_of_a_move(self):
        new = [name + b" moved" for name in self.names]
        rows = [row for a, b in zip(self.names, new) for row in (("from", a), ("rename", b))]
        done = self.ops(*rows)
        self.assertEqual(["ok"] * len(new), done.said)
        for where in (done.asked, done.report["denials"]):
            self.assertEqual(list(zip(self.names, new)),
                             [(self.bytes_of(d, "path"), self.bytes_of(d, "path2")) for d in where])

    def test_names_to_be_made(self):
        names = [os.fsencode(self.outside) + b"/new " + name for name in self.ODD]
        done = self.ops(*(("creat", name) for name in names))
        self.assertEqual(names, [self.bytes_of(q, "path") for q in done.asked])
        self.assertTrue(all(os.path.exists(name) for name in names))


@both_users
class Lengths(PathCase):
    def padded(self, length):
        """The secret's path, with slashes up to that many bytes."""
        return self.outside + "/" * (length - len(self.outside) - 1) + "f"

    def test_the_longest_path(self):
        done = self.ops(("read", self.padded(PATH_MAX - 1)), ("read", self.padded(PATH_MAX)))
        self.assertEqual(["ok OUTSIDE", "ENAMETOOLONG"], done.said)
        self.assertEqual([self.secret], [q["path"] for q in done.asked])
        d, = done.report["denials"]
        self.assertEqual((self.secret, self.padded(PATH_MAX - 1)), (d["path"], d["given"]))

    def test_the_longest_name(self):
        done = self.ops(*(("creat", f"{self.outside}/{'n' * n}") for n in (255, 256)))
        self.assertRegex(done.said[0], "^ok")
        self.assertEqual("ENAMETOOLONG", done.said[1])
        self.assertEqual([f"{self.outside}/{'n' * 255}"], [q["path"] for q in done.asked])

    def test_deeper_than_any_path_can_say(self):
        """No rule could name it: not asked, refused, and told in full."""
        name = "x" * 120
        steps = ("cd", self.outside), ("sub", name)
        self.assertStatus(self.native(fixture("path_ops"), *steps[0], *steps[1], "creat", "deep"))
        done = self.ops(*steps, ("read", "deep"), ("mkdir", "new"), ("read", "."), ("read", "none"))
        self.assertEqual(["ok", "EACCES", "EACCES", "EACCES", "ENOENT"], done.said)
        self.assertNothingAsked(done)
        here = self.outside + f"/{name}" * 40
        self.assertEqual([(f"{here}/deep", "deep"), (f"{here}/new", "new"), (here, ".")],
                         [(d["path"], d["given"]) for d in done.report["denials"]])
        self.assertEqual([], done.report["suggested"])
        self.assertNotIn("to allow", done.err)
        self.assertIn("no rule can name it", done.err)

    def test_deep_in_the_project_all_works(self):
        done = self.ops(("mkdir", "s"), ("cd", "s"), ("sub", "x" * 120), ("creat", "deep"), ("read", "deep"),
                        ("unlink", "deep"))
        self.assertNothingAsked(done)
        self.assertEqual([], done.report["denials"])
        self.assertTrue(all(line.startswith("ok") for line in done.said), done)

    def test_deep_beside_an_exception(self):
        """The wall has no rule for all that is below s: what is new there is brokered."""
        done = self.ops(("mkdir", "s"), ("cd", "s"), ("sub", "x" * 120), ("creat", "deep"), ("read", "deep"),
                        ("mkdir", "more"), ("creat", "more/deep"), ("unlink", "deep"), args=("--rule", "deny w s/kept"))
        self.assertNothingAsked(done)
        self.assertEqual([], done.report["denials"])
        self.assertTrue(all(line.startswith("ok") for line in done.said), done)
        self.assertGreater(done.report["engine"]["brokered"], 0)

    def test_deep_moves_beside_an_exception(self):
        """Between places of which all the policy's words are the same; the exception stays where it is."""
        self.write("project/s/kept", "SECRET")
        self.write("project/s/up", "up")
        steps = ("cd", "s"), ("sub", "x" * 120)
        moves = (("creat", "one"), ("from", "one"), ("rename", "two"), ("mkdir", "d"), ("from", "two"), ("rename", "d/three"),
                 ("from", "d/three"), ("link", "four"), ("from", "d"), ("rename", "e"))
        done = self.ops(*steps, *moves, args=("--rule", "deny w s/kept"))
        self.assertNothingAsked(done)
        self.assertTrue(all(line.startswith("ok") for line in done.said), done)
        self.assertEqual([], done.report["denials"])
        up = "../" * 40
        done = self.ops(*steps, ("from", f"{up}kept"), ("rename", "here"), ("link", "here"), ("from", "four"),
                        ("rename", f"{up}kept"), args=("--rule", "deny w s/kept"))
        self.assertEqual(3, sum(said.startswith("E") for said in done.said), done.said)
        self.assertEqual("SECRET", self.read("project/s/kept"))

    def test_deep_where_a_pattern_may_mean_it(self):
        steps = ("mkdir", "s"), ("cd", "s"), ("sub", "x" * 120)
        self.assertStatus(self.native(fixture("path_ops"), *(word for step in steps for word in step)))
        done = self.ops(*steps[1:], ("creat", "deep"), ("creat", "other"), args=("--rule", "deny w **/deep"))
        self.assertNothingAsked(done)
        self.assertEqual(["EACCES", "EACCES"], done.said[1:])
        self.assertEqual({"its path is longer than any rule can say"}, {d["note"] for d in done.report["denials"]})


@both_users
class Memory(PathCase):
    """Where the text lies."""

    def test_what_the_kernel_can_read(self):
        done = self.ops(("edge", self.secret), ("cross", f"{self.outside}/d/../f"), ("read", self.padded()))
        self.assertEqual(["ok OUTSIDE"] * 3, done.said)
        self.assertEqual([self.secret], [q["path"] for q in done.asked])
        self.assertEqual(["OUTSIDE"], [self.read("outside/f")])

    def padded(self):
        return self.outside + "//" * 1900 + "f"

    def test_what_it_can_not_read(self):
        done = self.ops(("unterminated", self.secret), ("protnone", self.secret), ("null", "-"))
        self.assertEqual(["EFAULT"] * 3, done.said)
        self.assertNothingAsked(done)
        self.assertEqual([], done.report["denials"])

    def test_a_program_that_lets_nobody_look(self):
        """As root it is read all the same; as anybody else the report says what is not known."""
        program = os.path.join(self.project, "ops")
        shutil.copy(fixture("path_ops"), program)
        os.chmod(program, 0o111)
        self.own(program)
        done = self.hold("--", program, "read", self.secret)
        self.assertStatus(done)
        d, = done.report["denials"]
        if self.uid == 0:
            self.assertEqual(("ok OUTSIDE\n", self.secret), (done.out, d["path"]))
            return
        self.assertEqual("EACCES\n", done.out)
        self.assertNothingAsked(done)
        self.assertEqual(("", "other", ["read"]), (d["path"], d["verdict"], d["access"]))
        self.assertIn("not dumpable", d["note"])


@both_users
class Bases(PathCase):
    """What a relative path is relative to."""

    def test_descriptors_with_anything_above_them(self):
        done = self.ops(("dir", self.outside), ("at-read", "f"), ("at-creat", "new"), ("at-read", "d/../f"),
                        ("at-read", self.secret), ("cwd-read", "../outside/f"))
        self.assertEqual(["ok", "ok OUTSIDE"], done.said[:2])
        self.assertEqual(["ok OUTSIDE"] * 3, done.said[3:])
        self.assertEqual([("outside/f", "f", ["read"]), ("outside/new", "new", ["write", "create"])],
                         self.asked(done))

    def test_no_such_base(self):
        done = self.ops(("base", "77"), ("at-read", "f"), ("base", "-5"), ("at-read", "f"), ("dir", self.secret),
                        ("at-read", "x"), ("at-read", "."), ("dir", self.outside), ("at-read", ""))
        self.assertEqual(["EBADF", "EBADF", "ok", "ENOTDIR", "ENOTDIR", "ok", "ENOENT"], done.said)
        self.assertNothingAsked(done)
        self.assertEqual([], done.report["denials"])

    def test_a_thread_with_descriptors_of_its_own(self):
        done = self.ops(("dir", self.outside), ("files-read", "f"))
        self.assertEqual(["ok", "ok OUTSIDE"], done.said)
        self.assertEqual([("outside/f", "f", ["read"])], self.asked(done))

    def test_a_thread_with_a_directory_of_its_own(self):
        done = self.ops(("dir", self.outside), ("fs-read", "f"), ("read", "f"))
        self.assertEqual(["ok", "ok OUTSIDE", "ENOENT"], done.said)
        self.assertEqual([("outside/f", "f", ["read"])], self.asked(done))

    def test_a_thread_binds_a_socket_of_its_own(self):
        done = self.ops(("thread-bind", f"{self.outside}/s"))
        self.assertEqual(["ok"], done.said)
        self.assertEqual([("outside/s", None, ["create"])], self.asked(done))
        with socket.socket(socket.AF_UNIX) as s:
            self.assertRaises(ConnectionRefusedError, s.connect, f"{self.outside}/s")  # bound, not listening

    def test_the_longest_address(self):
        name = f"{self.outside}/s"
        path = name + "x" * (108 - len(name))
        for args in ((), ("--rule", f"allow rw {self.outside}/s* exact")):
            with self.subTest(args):
                done = self.ops(("bind-full", name), args=args)
                self.assertEqual(["ok"], done.said, done)
                self.assertEqual([path] if not args else [], [q["path"] for q in done.asked])
                os.unlink(path)

    def test_an_empty_path_with_a_base(self):
        done = self.ops(("dir", self.secret), ("link-empty", f"{self.outside}/second"))
        if self.uid != 0 and done.said[1] == "ENOENT":
            self.skipTest("this kernel lets only root link a descriptor")
        self.assertEqual("ok", done.said[1], done)
        self.assertEqual("OUTSIDE", self.read("outside/second"))
        q, = done.asked
        self.assertEqual((f"{self.outside}/second", self.secret, ["create"]), (q["path"], q["path2"], q["access"]))

    def test_a_directory_that_is_gone(self):
        gone = self.mkdir("outside/gone")
        done = self.ops(("cd", gone), ("rmdir", gone), ("read", "x"), ("creat", "x"), ("mkdir", "y"),
                        ("read", "../f"), ("read", "."))
        self.assertEqual(["ok", "ok", "ENOENT", "ENOENT", "ENOENT", "ok OUTSIDE", "EACCES"], done.said)
        self.assertEqual([("outside/gone", None, ["delete"]), ("outside/f", "../f", ["read"])], self.asked(done))
        self.assertEqual(("outside/gone (deleted)", ".", "sandbox", "deny"), self.entries(done)[2])
        self.assertEqual([], done.report["suggested"])

    def test_roots(self):
        if self.uid != 0:
            self.skipTest("chroot needs privilege")
        self.write("outside/jail/f", "JAIL")
        self.symlink("/f", "outside/jail/link")
        done = self.ops(("chroot", f"{self.outside}/jail"), ("cd", "/"), ("read", "/f"), ("read", "../../f"),
                        ("read", "link"), ("creat", "/new"), ("thread-bind", "/s"), ("read", self.secret))
        self.assertEqual(["ok", "ok", "ok JAIL", "ok JAIL", "ok JAIL"], done.said[:5])
        self.assertEqual(["ok", "ENOENT"], done.said[6:])
        jail = "outside/jail"
        self.assertEqual([(f"{jail}/f", "/f", ["read"]), (f"{jail}/new", "/new", ["write", "create"]),
                          (f"{jail}/s", "/s", ["create"])], self.asked(done))
        self.assertTrue(os.path.exists(f"{self.outside}/jail/s"))


@both_users
class Shapes(PathCase):
    """Dots, slashes, links."""

    def test_the_same_place_in_many_spellings(self):
        self.symlink(self.outside, "project/out")
        self.symlink("out", "project/chain")
        rows = [("read", path) for path in (
            "../outside/f", "..//outside///f", "./.././outside/./f", f"{self.outside}/d/../f", f"//{self.secret}",
            "out/f", "chain/f", "chain/d/../f", "out/../outside/f", f"/../../{self.secret}")]
        done = self.ops(*rows)
        self.assertEqual(["ok OUTSIDE"] * 10, done.said)
        self.assertEqual([("outside/f", "../outside/f", ["read"])], self.asked(done))
        done = self.run_report("--", fixture("path_ops"), *(word for row in rows for word in row))
        self.assertEqual([("outside/f", "../outside/f", "sandbox", "deny")], self.entries(done))
        self.assertEqual(10, done.report["denials"][0]["count"])

    def test_slashes_behind_it(self):
        self.symlink("f", "outside/to_f")
        self.symlink("d", "outside/to_d")
        o = self.outside
        done = self.ops(("read", f"{o}/f/"), ("read", f"{o}/to_f/"), ("creat", f"{o}/new/"), ("read", f"{o}/none/"),
                        ("unlink", f"{o}/f/"), ("unlink", f"{o}/to_d/"), ("mkdir", f"{o}/d/"), ("mkdir", f"{o}/to_d/"),
                        ("rmdir", f"{o}/f/"), ("rmdir", f"{o}/to_d/"))
        self.assertEqual(["ENOTDIR", "ENOTDIR", "EISDIR", "ENOENT", "ENOTDIR", "ENOTDIR", "EEXIST", "EEXIST",
                          "ENOTDIR", "ENOTDIR"], done.said)
        self.assertNothingAsked(done)
        self.assertTrue(os.path.isdir(f"{o}/d"))
        done = self.ops(("read", f"{o}/d/"), ("nofollow", f"{o}/to_d/"), ("directory", f"{o}/to_d/."), ("mkdir", f"{o}/new/"))
        self.assertEqual([("outside/d", "outside/d/", ["list"]), ("outside/new", "outside/new/", ["create"])],
                         self.asked(done))

    def test_moves_with_slashes_behind_them(self):
        self.symlink("d", "outside/to_d")
        o = self.outside
        done = self.ops(("from", f"{o}/to_d/"), ("rename", f"{o}/x"), ("from", f"{o}/f/"), ("rename", f"{o}/x"),
                        ("from", f"{o}/f"), ("rename", f"{o}/x/"), ("from", f"{o}/d/"), ("rename", f"{o}/x/"))
        self.assertEqual(["ENOTDIR", "ENOTDIR", "ENOTDIR", "ok"], done.said)
        self.assertEqual([("outside/d", "outside/d/", ["create", "delete"])], self.asked(done))
        self.assertEqual(f"{o}/x", done.asked[0]["path2"])

    def test_links_both_ways(self):
        self.symlink(self.secret, "project/there")
        self.symlink(f"{self.project}/p", "outside/back")
        done = self.ops(("read", "there"), ("read", f"{self.outside}/back"), ("nofollow", "there"),
                        ("nofollow", f"{self.outside}/back"))
        self.assertEqual(["ok OUTSIDE", "ok INSIDE", "ELOOP", "ELOOP"], done.said)
        self.assertEqual([("outside/f", "there", ["read"])], self.asked(done))

    def test_refused_by_its_target(self):
        self.symlink(self.secret, "project/there")
        done = self.ops(("read", "there"), answer=deny)
        self.assertEqual((["EACCES"], [("outside/f", "there", "sandbox", "deny")]), (done.said, self.entries(done)))

    def test_how_many_links(self):
        self.symlink(self.secret, "outside/l1")
        for i in range(2, 42):
            self.symlink(f"l{i - 1}", f"outside/l{i}")
        self.symlink("loop", "outside/loop")
        done = self.ops(("read", f"{self.outside}/l40"), ("read", f"{self.outside}/l41"), ("read", f"{self.outside}/loop"),
                        ("creat", f"{self.outside}/loop"), ("read", f"{self.outside}/loop/x"))
        self.assertEqual(["ok OUTSIDE", "ELOOP", "ELOOP", "ELOOP", "ELOOP"], done.said)
        self.assertEqual([("outside/f", "outside/l40", ["read"])], self.asked(done))

    def test_links_to_what_is_not_there(self):
        self.symlink(f"{self.outside}/new", "project/dangling")
        self.symlink(f"{self.project}/made", "outside/back")
        self.symlink("none/new", "outside/nowhere")
        done = self.ops(("read", "dangling"), ("excl", "dangling"), ("creat", "dangling"),
                        ("creat", f"{self.outside}/back"), ("creat", f"{self.outside}/nowhere"))
        self.assertEqual(["ENOENT", "EEXIST"], done.said[:2])
        self.assertRegex(done.said[3], "^ok")
        self.assertEqual("ENOENT", done.said[4])
        self.assertEqual([("outside/new", "dangling", ["write", "create"])], self.asked(done))
        self.assertTrue(os.path.exists(f"{self.outside}/new") and os.path.exists(f"{self.project}/made"))

    def test_existence_comes_first(self):
        o = self.outside
        done = self.ops(("read", f"{o}/none"), ("read", f"{o}/none/x"), ("read", f"{o}/f/x"), ("mkdir", f"{o}/d"),
                        ("mkdir", f"{o}/none/x"), ("excl", f"{o}/f"), ("rmdir", f"{o}/none"), ("unlink", f"{o}/none"),
                        ("read", ""), ("creat", ""), ("rmdir", f"{o}/d/."), ("rmdir", f"{o}/d/.."), ("unlink", f"{o}/."))
        self.assertEqual(["ENOENT", "ENOENT", "ENOTDIR", "EEXIST", "ENOENT", "EEXIST", "ENOENT", "ENOENT", "ENOENT",
                          "ENOENT", "EINVAL", "ENOTEMPTY", "EISDIR"], done.said)
        self.assertNothingAsked(done)
        self.assertEqual([], done.report["denials"])


@both_users
class Magic(PathCase):
    """/proc/PID and what leads there."""

    def test_descriptors_lead_to_what_they_are_of(self):
        ways = ("/proc/self/fd/9", "/proc/thread-self/fd/9", "/dev/fd/9", "/proc/self/../self/fd/9",
                "/proc/self/task/../fd/9", f"/proc/self/root{self.secret}", "/proc/self/cwd/../outside/f")
        done = self.ops(("keep-path", self.secret), *(("read", way) for way in ways))
        self.assertEqual(["ok"] + ["ok OUTSIDE"] * len(ways), done.said)
        self.assertEqual([("outside/f", "/proc/self/fd/9", ["read"])], self.asked(done))
        done = self.ops(("keep-path", self.secret), *(("read", way) for way in ways), answer=deny)
        self.assertEqual(["ok"] + ["EACCES"] * len(ways), done.said)
        self.assertEqual([("outside/f", "/proc/self/fd/9", "sandbox", "deny")], self.entries(done))

    def test_by_number(self):
        script = (f"import os; fd = os.open({self.secret!r}, os.O_PATH)\n"
                  "import threading; t = threading.get_native_id(); p = os.getpid()\n"
                  "for way in (f'/proc/{p}/fd/{fd}', f'/proc/{p}/task/{t}/fd/{fd}', f'/proc/{t}/fd/{fd}'):\n"
                  "    print(open(way).read())\n")
        done = self.hold("--", "/usr/bin/python3", "-c", script)
        self.assertEqual("OUTSIDE\n" * 3, done.out, done)
        self.assertEqual([self.secret], [q["path"] for q in done.asked])

    def test_of_another_process_of_the_tree(self):
        script = f"exec 3<{self.outside}/f; exec sleep 30"
        done = self.hold("--", "sh", "-c", f"sh -c '{script}' & sleep 0.3; cat /proc/$!/fd/3; kill $!")
        self.assertEqual("OUTSIDE", done.out, done)

    def test_what_it_has_open_already_is_not_asked_about(self):
        with open(self.secret) as f:
            done = self.ops(("read", "/dev/stdin"), ("write", "/dev/stdin"), stdin=f)
        self.assertEqual("ok OUTSIDE", done.said[0])
        self.assertEqual([("outside/f", "/dev/stdin", ["write"])], self.asked(done))

    def test_output_that_is_a_file(self):
        out = self.write("outside/out", "before\n")
        for way in ("/dev/stdout", "/proc/self/fd/1", "/dev/fd/1"):
            with self.subTest(way), open(out, "r+") as f:
                p = self.start([WARDER, "run", "--report", self.report_file, "--", "sh", "-c", f"echo {way} > {way}"],
                               stdout=f)
                self.assertEqual(0, p.wait(timeout=TIMEOUT))
                self.assertEqual([], self.read_report()["denials"])
                self.assertEqual(f"{way}\n", self.read("outside/out"))

    def test_deleted_files(self):
        """As a here-document is one: opened again by the same access, and by no other."""
        with open(self.secret) as f:
            os.unlink(self.secret)
            done = self.ops(("read", "/dev/stdin"), ("both", "/proc/self/fd/0"), stdin=f)
        self.assertEqual(["ok OUTSIDE", "EACCES"], done.said)
        self.assertNothingAsked(done)
        self.assertEqual([("outside/f (deleted)", "/proc/self/fd/0", "sandbox", "deny")], self.entries(done))
        self.assertEqual([], done.report["suggested"])
        self.assertNotIn("to allow", done.err)

    def test_here_documents(self):
        big = "x" * 70000
        done = self.hold("--tmp", "shared", "--deny", self.tmp, "--", "cat", "/dev/stdin", stdin=self.heredoc(big))
        self.assertStatus(done)
        self.assertEqual(len(big), len(done.out))

    def heredoc(self, text):
        """As bash does it: a file that has no name any more, opened for reading."""
        path = self.write("outside/heredoc", text)
        fd = os.open(path, os.O_RDONLY)
        self.addCleanup(os.close, fd)
        os.unlink(path)
        return fd

    def test_pipes_memory_and_sockets(self):
        there, back = os.pipe()
        memory = os.memfd_create("x")
        os.write(memory, b"MEMORY")
        os.lseek(memory, 0, os.SEEK_SET)
        pair = socket.socketpair()
        self.own_fd(there)
        rows = ((there, "ok"), (memory, "ok MEMORY"), (pair[0].fileno(), "ENXIO"))
        for fd, said in rows:
            with self.subTest(said):
                done = self.ops(("nonblock", "/dev/stdin"), stdin=fd)
                self.assertIn(said, done.said[0])
                self.assertEqual([], done.report["denials"])
        for fd in (there, back, memory):
            os.close(fd)
        for s in pair:
            s.close()

    def own_fd(self, fd):
        if self.uid != os.getuid():
            os.fchown(fd, self.uid, self.uid)

    def test_the_program_and_no_terminal(self):
        done = self.ops(("read", "/proc/self/exe"), ("both", "/dev/tty"))
        self.assertIn("ELF", done.said[0])
        self.assertEqual("ENXIO", done.said[1])
        self.assertNothingAsked(done)

    def test_what_no_answer_can_open(self):
        """Of a process that will be another one when the command runs again."""
        done = self.ops(("write", "/proc/self/comm"), ("write", "/proc/thread-self/comm"))
        self.assertEqual(["EACCES", "EACCES"], done.said)
        self.assertNothingAsked(done)
        self.assertEqual({"other"}, {d["verdict"] for d in done.report["denials"]})
        self.assertEqual("/proc/self/comm", done.report["denials"][0]["given"])
        done = self.ops(("write", "/proc/self/comm"), args=("--rule", "allow rw /proc"))
        self.assertRegex(done.said[0], "^ok")

    def test_an_object_of_the_kernel_takes_another_run(self):
        node = "/proc/sys/kernel/ostype"
        done = self.ops(("read", node), args=("--no-presets", "--preset", "project", "-x", "/usr", "-r", "/etc",
                                              "-x", os.path.dirname(fixture("path_ops"))))
        self.assertEqual(["EACCES"], done.said[:1])
        self.assertIn(node, [q["path"] for q in done.asked])
        self.assertIn("ok Linux", done.out)


@both_users
class Blocking(PathCase):
    def test_a_fifo_waits_for_its_other_side_and_nobody_else_does(self):
        fifo = os.path.join(self.outside, "fifo")
        os.mkfifo(fifo)
        self.own(fifo)
        other = self.write("outside/other", "OTHER")
        done = self.hold("--", "sh", "-c", f"cat {fifo} & cat {other}; echo THROUGH > {fifo}; wait")
        self.assertStatus(done)
        self.assertEqual("OTHERTHROUGH\n", done.out)

    def test_it_is_interrupted_as_ever(self):
        fifo = os.path.join(self.outside, "fifo")
        os.mkfifo(fifo)
        self.own(fifo)
        script = ("import os, signal, sys\n"
                  "def on(*_): raise TimeoutError\n"
                  "signal.signal(signal.SIGALRM, on)\n"
                  "signal.setitimer(signal.ITIMER_REAL, 0.3)\n"
                  "try: os.open(sys.argv[1], os.O_RDONLY)\n"
                  "except TimeoutError: print('interrupted')\n")
        done = self.hold("--", "/usr/bin/python3", "-c", script, fifo)
        self.assertEqual("interrupted\n", done.out, done)
        done = self.hold("--", "timeout", "-s", "KILL", "0.3", "cat", fifo)
        self.assertNotEqual(0, done.status)


if __name__ == "__main__":
    main()
