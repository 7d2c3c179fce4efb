#!/usr/bin/env python3
"""Btrfs makes, copies and removes subvolumes by ioctl, of which Landlock is not told."""

import os
import unittest

from run_help import WARDER, RunCase, main, needs

ATTACK = r"""
import fcntl, os, struct, sys
home = os.open(sys.argv[1], os.O_RDONLY)
project = os.open(".", os.O_RDONLY)
def volume(fd, number, name, of=0):
    try:
        fcntl.ioctl(fd, number, bytearray(struct.pack("q", of) + name.ljust(4088, b"\0")))
        return "done"
    except OSError as e:
        return os.strerror(e.errno)
print(volume(project, 0x50009401, b"snap", home))
print(volume(home, 0x5000940e, b"new"))
print(volume(home, 0x5000940f, b"old"))
"""

# In a mount namespace of its own; the loop device goes with the mount.
INSIDE = """
set -e
cd "$1"
mount -o loop image mnt
btrfs -q subvolume create mnt/home
btrfs -q subvolume create mnt/home/old
mkdir mnt/home/project
echo KEY > mnt/home/key
cd mnt/home/project
"$2" run -q --rule "allow list $1/mnt/home exact" --on-denial report -- /usr/bin/python3 -c "$3" ..
find "$1/mnt/home" -mindepth 1 -printf '%P\n' | sort
"""


@needs("mkfs.btrfs", "btrfs", "unshare")
@unittest.skipUnless(os.getuid() == 0 and os.path.exists("/dev/loop-control"),
                     "mounting takes root and a loop device")
class Snapshot(RunCase):
    def test_no_copy_of_what_may_only_be_listed(self):
        image = self.write("image")
        os.truncate(image, 128 << 20)
        os.mkdir(os.path.join(self.dir, "mnt"))
        if self.native("mkfs.btrfs", "-q", image).status:
            self.skipTest("no btrfs can be made")
        done = self.native("unshare", "-m", "--propagation", "private", "sh", "-c", INSIDE, "sh",
                           self.dir, WARDER, ATTACK)
        if "mount" in done.err:
            self.skipTest("it can't be mounted: " + done.err)
        refused = "Inappropriate ioctl for device\n" * 3
        self.assertEqual(refused + "key\nold\nproject\n", done.out, done)


if __name__ == "__main__":
    main()
