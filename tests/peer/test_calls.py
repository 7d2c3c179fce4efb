#!/usr/bin/env python3
"""Every call that Landlock can refuse, on a directory that is open for more and more: strace is the judge."""

from peer_help import HERE, OPEN, Peer, both_users, main, needs


@both_users
@needs("/usr/bin/python3")
class Calls(Peer):
    def judge(self, *rules, **more):
        options = [*OPEN, "-r", HERE]
        for rule in rules:
            options += ["--rule", f"allow {rule} {self.outside}"]
        self.compare(options, f"exec /usr/bin/python3 -IB {HERE}/calls.py {self.outside}",
                     f"/usr/bin/python3 -IB {HERE}/calls.py --prepare $OUTSIDE; touch $PROJECT/in-1 $PROJECT/in-2", **more)

    def test_shut(self):
        self.judge()

    def test_list(self):
        self.judge("list")

    def test_read(self):
        self.judge("read")

    def test_exec(self):
        self.judge("rx")

    def test_write(self):
        self.judge("read,write")

    def test_all_but_moving(self):
        self.judge("read,list,write,create,delete")

    def test_writable(self):
        self.judge("rw")


if __name__ == "__main__":
    main()
