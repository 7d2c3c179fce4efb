#!/usr/bin/env python3
"""Programs that copy, search and change files, in walls of several kinds: strace is the judge."""

from peer_help import OPEN, READ_ONLY, TREE, Peer, both_users, main, needs


@both_users
class Files(Peer):
    def test_tar(self):
        self.compare(OPEN, f"tar cf t.tar tree; tar cf u.tar -C {self.outside} d o; mkdir x && tar xf t.tar -C x;"
                     f"tar xf t.tar -C {self.outside}", TREE)

    def test_cp(self):
        self.compare(OPEN, f"cp -a tree copy; cp -a {self.outside} .; cp -a tree {self.outside}/", TREE)

    @needs("rsync")
    def test_rsync(self):
        self.compare(OPEN, f"rsync -a tree/ copy/; rsync -a {self.outside}/ got/; rsync -a tree {self.outside}/",
                     TREE, output=False)

    def test_find(self):
        self.compare(OPEN, f"find . {self.outside} {self.home} -type f; find tree/c -follow -exec cat {{}} +", TREE)

    def test_grep(self):
        self.compare(OPEN, f"grep -r e . {self.outside} {self.home}; grep -R t tree", TREE)

    def test_a_project_that_is_read_only(self):
        self.compare(READ_ONLY, "mv tree/a tree/e; ln tree/a/one l; echo a > new; echo b >> tree/a/one; mkdir d;"
                     "rm -rf tree/a; ln -s x s; mkfifo f; touch t; truncate -s 0 tree/a/one;"
                     "cp tree/a/one c; mktemp; sed -i s/o/e/ tree/a/one", TREE)

    def test_what_can_not_be_removed_anyway(self):
        self.compare(READ_ONLY, "rmdir tree/a tree/c; mkdir d; rmdir tree", TREE, output=False)


if __name__ == "__main__":
    main()
