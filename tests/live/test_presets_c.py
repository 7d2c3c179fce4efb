#!/usr/bin/env python3
"""`--preset c`: a first run of compilers and build tools in an empty home."""

from preset_help import FirstRun
from run_help import both_users, main, needs

SOURCES = {
    "main.c": '#include "lib.h"\n#include <stdio.h>\nint main(void) { printf("%d\\n", lib()); return 0; }\n',
    "lib.c": '#include "lib.h"\nint lib(void) { return 42; }\n',
    "lib.h": "int lib(void);\n",
    "Makefile": "prog: main.o lib.o\n\t$(CC) -o $@ $^\nclean:\n\trm -f *.o prog\nmain.o lib.o: lib.h\n",
    "CMakeLists.txt": "cmake_minimum_required(VERSION 3.20)\nproject(p C)\nenable_testing()\nadd_library(lib STATIC lib.c)\n"
                      "add_executable(prog main.c)\ntarget_link_libraries(prog lib)\nadd_test(NAME t COMMAND prog)\n"
                      "install(TARGETS prog)\n",
    "configure": "#!/bin/sh\nset -e\necho 'checking for a compiler'\nmkdir conftest.dir\ncd conftest.dir\n"
                 "echo 'int main(void) { return 0; }' > conftest.c\n${CC-cc} -o conftest conftest.c\n./conftest\ncd ..\n"
                 "rm -rf conftest.dir\nln -s lib.c conftest.link && rm conftest.link\ncat > config.status.tmp <<END\nok\nEND\n"
                 "mv -f config.status.tmp config.status\nchmod +x config.status\n",
    "x.pc": "Name: x\nDescription: x\nVersion: 1\nCflags: -DX\n",
}


@both_users
class C(FirstRun):
    preset = "c"

    def setUp(self):
        super().setUp()
        self.make(SOURCES)

    @needs("gcc")
    def test_gcc(self):
        done = self.first_run("gcc -c -g -O2 -flto main.c lib.c; gcc -flto=2 -o prog main.o lib.o; ./prog; rm *.o;"
                              "gcc -save-temps -pipe -o prog main.c lib.c; ./prog; ar rcs lib.a lib.o 2>/dev/null || true; strip prog;"
                              "gcc --coverage -o cov main.c lib.c; ./cov; gcov *.gcda >/dev/null; ldd ./prog >/dev/null")
        self.assertEqual("42\n42\n42\n", done.out)

    @needs("clang")
    def test_clang(self):
        self.assertEqual("42\n", self.first_run("clang -O1 -o prog main.c lib.c; ./prog").out)

    @needs("gcc", "make")
    def test_configure_make_and_run(self):
        """In one run, as anybody would."""
        done = self.first_run("./configure >/dev/null && make -s -j2 && ./prog && make -s clean")
        self.assertEqual("42\n", done.out)

    @needs("gcc", "cmake", "ninja")
    def test_cmake_and_ninja(self):
        self.first_run("cmake -S . -B out -G Ninja; cmake --build out -j2; out/prog; cmake --install out --prefix inst;"
                       "inst/bin/prog; cd out; ctest -j2", timeout=100)

    @needs("gcc", "cmake", "make")
    def test_cmake_and_make(self):
        self.first_run("cmake -S . -B out; make -s -C out -j2; out/prog", timeout=100)

    @needs("pkg-config")
    def test_pkg_config(self):
        self.assertIn("-DX", self.first_run("PKG_CONFIG_PATH=$PWD pkg-config --cflags x; pkg-config --list-all | wc -l").out)

    @needs("gcc", "ccache")
    def test_ccache(self):
        self.first_run("ccache gcc -c main.c; rm main.o; ccache gcc -c main.c; ccache -s >/dev/null; ls ~/.cache/ccache")

    @needs("gcc", "gdb")
    def test_gdb_reads_symbols(self):
        self.first_run("gcc -g -o prog main.c lib.c; gdb -batch -ex 'info line main' prog")


if __name__ == "__main__":
    main()
