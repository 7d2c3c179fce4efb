#!/usr/bin/env python3
"""What is done in the command's place: races against it, and calls that block it."""

import os

from run_help import RunCase, both_users, counts_by_chance, main

PYTHON = "/usr/bin/python3"

BIND_RACE = """
import os, socket, sys, time
os.mkdir("sub"); os.symlink("..", "sub/d"); os.symlink("../.git/hooks", "sub/l")
child = os.fork()
if child == 0:
    while True:
        os.rename("sub/l", "sub/d"); os.symlink("..", "sub/l")
        os.rename("sub/l", "sub/d"); os.symlink("../.git/hooks", "sub/l")
end, bound = time.monotonic() + float(sys.argv[1]), 0
while time.monotonic() < end and not os.path.lexists(".git/hooks/sock"):
    s = socket.socket(socket.AF_UNIX)
    try:
        s.bind("sub/d/sock")
        bound += 1
    except OSError:
        pass
    s.close()
    try:
        os.unlink("sock")
    except FileNotFoundError:
        pass
os.kill(child, 9)
os.wait()
print(bound > 0, os.path.lexists(".git/hooks/sock"))
"""

FIFOS = """
import os, sys, threading, time
def wait(name):
    try:
        os.open(name, os.O_RDONLY)
    except OSError:
        pass
for i in range(100):
    threading.Thread(target=wait, args=(f"{sys.argv[1]}/fifo{i}",), daemon=True).start()
time.sleep(2)
print(open(sys.argv[1] + "/file").read(), end="", flush=True)
os._exit(0)
"""


@both_users
class Broker(RunCase):
    @counts_by_chance
    def test_a_socket_does_not_land_below_the_directory_decided_on(self):
        self.assertStatus(self.native("git", "init", "-q", "."))
        done = self.run_report("--", PYTHON, "-c", BIND_RACE, "8")
        self.assertStatus(done)
        self.assertEqual("True False\n", done.out)

    def test_opens_that_block_keep_nothing_else_waiting(self):
        self.write("outside/file", "read\n")
        for i in range(100):
            path = os.path.join(self.outside, f"fifo{i}")
            os.mkfifo(path)
            self.own(path)
        done = self.run_report("--yes", "--", PYTHON, "-c", FIFOS, self.outside, timeout=20)
        self.assertStatus(done)
        self.assertEqual("read\n", done.out)


if __name__ == "__main__":
    main()
