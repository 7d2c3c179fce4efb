"""A hundred and twenty thousand verdicts of the model and of the kernel, and not one difference."""

import os
import subprocess
import unittest

ORACLE = os.environ["ORACLE"]
NO_LANDLOCK = 77
IS_ROOT = os.geteuid() == 0


class Long(unittest.TestCase):
    def test_a_hundred_and_twenty_thousand_verdicts(self):
        """Half of them as root, half as an ordinary user: at once, for there are two processors nearly everywhere."""
        users = ([], ["--user"]) if IS_ROOT else ([],)
        verdicts = str(120000 // len(users))
        running = [subprocess.Popen([ORACLE, "--verdicts", verdicts, *user], stderr=subprocess.PIPE, text=True)
                   for user in users]
        for one in running:
            self.addCleanup(one.kill)
        for one in running:
            report = one.communicate(timeout=280)[1]
            if one.returncode == NO_LANDLOCK:
                self.skipTest("no Landlock with refer here")
            print(report, end="")
            self.assertEqual(one.returncode, 0, report)


if __name__ == "__main__":
    unittest.main()
