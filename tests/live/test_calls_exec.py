#!/usr/bin/env python3
"""execve and execveat: the file that was refused is the one that is reported and asked about."""

import os
import shutil
import struct
import unittest

from run_help import RunCase, both_users, deny, fixture, main, needs

HELLO = fixture("hello_static")
ONE = fixture("run_one")


def loader_of(path):
    """An ELF file's PT_INTERP."""
    with open(path, "rb") as f:
        elf = f.read()
    offset, = struct.unpack_from("<Q", elf, 32)
    size, count = struct.unpack_from("<HH", elf, 54)
    for i in range(count):
        kind, _, at, _, _, length = struct.unpack_from("<IIQQQQ", elf, offset + i * size)
        if kind == 3:
            return elf[at:at + length - 1].decode()
    raise AssertionError("it has no loader")


def with_loader(path, loader):
    """The same program with another loader, whose name is no longer."""
    with open(path, "rb") as f:
        elf = f.read()
    old = loader_of(path).encode() + b"\0"
    new = loader.encode() + b"\0"
    assert len(new) <= len(old), (old, new)
    return elf.replace(old, new.ljust(len(old), b"\0"))


@both_users
class Exec(RunCase):
    def program(self, path, content=None):
        path = os.path.join(self.dir, path)
        if content is None:
            shutil.copy(HELLO, path)
        else:
            with open(path, "wb") as f:
                f.write(content if isinstance(content, bytes) else content.encode())
        os.chmod(path, 0o755)
        return self.own(path)

    def one(self, *args, rules=(), **more):
        """execve by a program that needs nothing else."""
        return self.run_report(*rules, "--", ONE, "exec", *args, "-", **more)

    def assertRefused(self, done, path, verdict="sandbox", access=("read", "exec"), call="execve"):
        [d] = done.denials(path)
        self.assertEqual((verdict, list(access), call, "EACCES"), (d["verdict"], d["access"], d["call"], d["errno"]), done)
        self.assertEqual([path], [d["path"] for d in done.report["denials"]])
        return d

    def test_the_file(self):
        path = self.program("outside/prog")
        self.assertRefused(self.one(path), path)

    def test_the_interpreter(self):
        interpreter = self.program("outside/interp")
        script = self.program("project/script", f"#!{interpreter}\n")
        d = self.assertRefused(self.one(script), interpreter)
        self.assertEqual(script, d.get("given", script))

    def test_an_interpreter_of_an_interpreter(self):
        third = self.program("outside/third")
        second = self.program("project/second", f"#! \t{third} -x\n")
        script = self.program("project/script", f"#!{second}\n")
        self.assertRefused(self.one(script), third)

    def test_an_interpreter_by_a_relative_name_and_a_link(self):
        third = self.program("outside/third")
        os.symlink(third, f"{self.project}/link")
        script = self.program("project/script", "#!./link\n")
        self.assertRefused(self.one(script), third)

    def test_the_loader(self):
        loader = "/tmp/wl" + os.path.basename(self.dir)[-8:]
        shutil.copy(loader_of("/bin/true"), loader)
        self.addCleanup(os.unlink, loader)
        os.chmod(loader, 0o755)
        prog = self.program("project/prog", with_loader("/bin/true", loader))
        done = self.one(prog)
        self.assertEqual("exec EACCES\n", done.out)
        self.assertRefused(done, loader)
        done = self.one(prog, rules=("-x", loader))
        self.assertEqual("exec ok\n", done.out)

    def test_a_loader_that_is_missing_is_no_denial(self):
        prog = self.program("project/prog", with_loader("/bin/true", "/no/such"))
        for place in (prog, self.program("project/script", f"#!{prog}\n"),
                      self.program("project/script2", "#!/no/such\n")):
            done = self.one(place)
            self.assertEqual("exec ENOENT\n", done.out)
            self.assertEqual([], done.report["denials"])

    def test_what_is_no_program(self):
        text = self.program("project/text", "just words\n")
        done = self.one(text)
        self.assertEqual("exec ENOEXEC\n", done.out)
        self.assertEqual([], done.report["denials"])
        other = self.program("outside/text", "echo as a script\n")
        done = self.hold("--", "sh", "-c", other)
        self.assertEqual([other], sorted({q["path"] for q in done.asked if not q.get("rerun")}), done)
        self.assertIn("as a script", done.out)

    def test_a_shared_object(self):
        """The loader's own open; the program then ends with 127."""
        lib = os.path.join(self.outside, "libwarder-test.so.1")
        prog = os.path.join(self.project, "prog")
        self.write("src/l.c", "int answer(void) { return 0; }\n")
        self.write("src/m.c", "int answer(void); int main(void) { return answer(); }\n")
        if not shutil.which("cc"):
            self.skipTest("no compiler")
        self.assertStatus(self.native("cc", "-shared", "-fPIC", "-o", lib, f"{self.dir}/src/l.c",
                                      "-Wl,-soname,libwarder-test.so.1"))
        self.assertStatus(self.native("cc", "-o", prog, f"{self.dir}/src/m.c", lib, f"-Wl,-rpath,{self.outside}"))
        done = self.run_report("--", "./prog")
        self.assertStatus(done, 127)
        self.assertIn("libwarder-test.so.1", done.err)
        self.assertRefused(done, lib, access=("read",), call="openat")
        done = self.hold("--", "./prog")
        self.assertStatus(done)
        self.assertEqual([lib], [q["path"] for q in done.asked])

    def test_what_its_own_mode_refuses(self):
        for place in ("project", "outside"):
            path = self.program(f"{place}/prog")
            os.chmod(path, 0o644)
            done = self.one(path)
            self.assertEqual("exec EACCES\n", done.out)
            self.assertRefused(done, path, verdict="permissions")

    @needs("python3")
    def test_by_descriptor(self):
        """fexecve, execveat and the name in /proc: the descriptor's file."""
        path = self.program("outside/prog")
        execveat = {"x86_64": 322, "aarch64": 281}[os.uname().machine]
        ways = {
            "fexecve": "os.execve(fd, ['p'], {})",
            "execveat": f"import ctypes; c = ctypes.CDLL(None, use_errno=True);"
                        f"n = (ctypes.c_char_p * 1)(); c.syscall({execveat}, fd, b'', n, n, 0x1000);"
                        f"raise OSError(ctypes.get_errno(), '')",
            "proc": "os.execve('/proc/self/fd/%d' % fd, ['p'], {})",
        }
        for name, way in ways.items():
            with self.subTest(name):
                script = (f"import os\nfd = os.open('{path}', os.O_PATH)\n"
                          f"try:\n    {way}\nexcept OSError as e:\n    print(e.errno)\n")
                done = self.run_report("--", "/usr/bin/python3", "-c", script)
                self.assertEqual("13\n", done.out, done)
                d = self.assertRefused(done, path, call="execve" if name == "proc" else "execveat")
                self.assertNotEqual("", d.get("given"))
                done = self.run_report("-x", path, "--", "/usr/bin/python3", "-c", script)
                self.assertStatus(done)
                self.assertEqual([], done.report["denials"])

    @needs("python3")
    def test_a_memfd_is_no_path(self):
        script = (f"import os\nfd = os.memfd_create('m', 0)\nos.write(fd, open('{HELLO}', 'rb').read())\n"
                  "os.execve('/proc/self/fd/%d' % fd, ['p'], {})\n")
        native = self.native("/usr/bin/python3", "-c", script)
        done = self.run_report("-r", HELLO, "--", "/usr/bin/python3", "-c", script)
        self.assertEqual((native.status, native.out), (done.status, done.out), done)
        self.assertEqual([], done.report["denials"])

    def test_the_loader_run_by_hand_reads_alone(self):
        loader = loader_of("/bin/true")
        path = self.write("outside/prog")
        shutil.copy("/bin/true", path)
        done = self.run_report("--", loader, path)
        self.assertStatus(done, 127)
        self.assertRefused(done, path, access=("read",), call="openat")
        done = self.run_report("-r", path, "--", loader, path)
        self.assertStatus(done)

    def test_the_question_names_it_too(self):
        interpreter = self.program("outside/interp")
        script = self.program("project/script", f"#!{interpreter}\n")
        done = self.hold("--", ONE, "exec", script, "-", answer=deny)
        [q] = done.asked
        self.assertEqual((interpreter, ["read", "exec"]), (q["path"], q["access"]))
        self.assertEqual("exec EACCES\n", done.out)
        done = self.hold("--", ONE, "exec", script, "-")
        self.assertIn("exec ok\n", done.out)
        self.assertEqual([interpreter], [q["path"] for q in done.asked if not q.get("rerun")], done)


if __name__ == "__main__":
    main()
