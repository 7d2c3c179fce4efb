#!/usr/bin/env python3
"""git, in walls of several kinds: strace is the judge."""

from peer_help import OPEN, READ_ONLY, Peer, both_users, main, needs

REPOSITORY = """
cd "$PROJECT" && export GIT_CONFIG_GLOBAL=/dev/null
git init -q r && cd r && echo a > f && mkdir d && echo b > d/g && git add . && git commit -qm one
echo c >> f && git commit -qam two
"""
QUIET = "export GIT_CONFIG_GLOBAL=/dev/null GIT_PAGER=cat;"


@both_users
@needs("git")
class Git(Peer):
    def test_a_repository_from_nothing(self):
        self.compare(OPEN, QUIET + f"git init -q r; cd r; echo a > f; git add f; git commit -qm one; git status;"
                     f"echo b > {self.outside}/no; cat {self.outside}/o; git log --oneline | cat", """
                     echo o > $OUTSIDE/o""", output=False)

    def test_daily_work(self):
        self.compare(OPEN, QUIET + f"cd r; git status -s; git branch side; git worktree add -q ../wt side;"
                     f"git clone -q . ../copy; git clone -q . {self.outside}/copy; git gc -q;"
                     f"git worktree add -q {self.outside}/wt -b other; git -C ../copy pull -q; git diff HEAD~1",
                     REPOSITORY, output=False)

    def test_what_git_tries_where_it_may_only_read(self):
        self.compare(READ_ONLY, QUIET + "cd r; git status; echo; git log --oneline | wc -l; git add .; git commit -qm no;"
                     "git checkout -q HEAD~1; git branch side; git gc -q; git stash", REPOSITORY, output=False)

    def test_a_home_that_is_closed(self):
        self.compare([*OPEN, "--deny", self.home], "git -C r status; git config --global user.name me; cd r; git log",
                     REPOSITORY + 'echo "[user]" > $HOME/.gitconfig')

    def test_the_shipped_presets(self):
        self.compare(["--preset", "git"], QUIET + f"cd r; echo x >> f; git commit -qam three; git checkout -q -b side;"
                     f"mkdir new; mv f new/; git add -A; git commit -qm moved; git clone -q . {self.outside}/copy;"
                     "echo '#!/bin/sh' > .git/hooks/pre-commit; git config user.name me; true",
                     REPOSITORY,
                     how="loose", excepted=[f"{self.project}/r/.git/hooks", f"{self.project}/r/.git/config"],
                     output=False)


if __name__ == "__main__":
    main()
