#!/usr/bin/env python3
"""
The fast path with the C library of a newer Debian: there every open that can be cancelled goes by one
function, and a thread's by another than a single one's. Its loader is run by its path.
"""

import os

from sources_help import fetched, newer_libc
from run_help import both_users, fixture, main
from test_fast import FastCase


@both_users
class NewerLibc(FastCase):
    def way(self, program, *args, most, out="wrong 0\n"):
        libc = fetched(newer_libc)
        program = fixture(program)
        on, _ = self.both_ways(os.path.join(libc, "ld-linux-x86-64.so.2"), "--library-path", libc, program, *args,
                               args=("-x", libc, "-x", program))
        self.assertEqual((0, out), (on.status, on.out), on)
        self.assertLess(self.stops(on), most, on)
        return on

    def test_one_thread(self):
        done = self.way("fast_ways", "storm", self.good, self.secret, most=10_000 + 500)
        self.assertEqual(10_000, done.denials(self.secret)[0]["count"])

    def test_threads(self):
        self.way("fast_ways", "threads", self.good, self.secret, most=1000)
        self.way("fast_ways", "late", self.good, self.secret, most=1000)

    def test_signals(self):
        self.way("fast_ways", "signals", self.good, self.secret, most=10_000,
                 out="wrong 0, signals many, seen in a stub 0\n")

    def test_an_open_that_is_cancelled(self):
        """Its handler asks whether the thread was within the one function."""
        fifo = os.path.join(self.project, "fifo")
        os.mkfifo(fifo)
        self.own(fifo)
        libc = fetched(newer_libc)
        program = fixture("fast_ways")
        script = '"$@" & p=$!; while kill -CONT $p 2>/dev/null; do sleep 0.05; done; wait $p'
        on, _ = self.both_ways("sh", "-c", script, "sh", os.path.join(libc, "ld-linux-x86-64.so.2"), "--library-path",
                               libc, program, "fifo", self.good, self.secret, fifo, args=("-x", libc, "-x", program))
        self.assertEqual("open Interrupted system call\nopen done\nopen done\ncleaned up\n"
                         "cancelled 1, handled 2, in a stub 0\n", on.out)


if __name__ == "__main__":
    main()
