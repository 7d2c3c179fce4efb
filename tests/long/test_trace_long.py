"""Ten million events take flat memory, and less of the processor than jq that looks at each line."""

import json
import os
import pathlib
import resource
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "live"))

from run_help import WARDER, main, needs
from test_trace_replay import TraceCase

EVENTS = 10_000_000
COMPARED = 500_000
TIMEOUT = 240


class TenMillion(TraceCase):
    def lines(self):
        self.record("sh", "-c", f"cat data.txt {self.outside}/*/file; ls -R /usr/include >/dev/null; git --version; "
                    "python3 -c 'import json, http.client'; gcc --version")
        with open(self.trace, "rb") as f:
            head, *events, _ = f.read().splitlines(keepends=True)
        return head, events

    def feed(self, argv, events_wanted):
        """The run's time on the processor in seconds, its memory in MiB and its output."""
        head, events = self.head, self.body
        block, n = b"".join(events), len(events)
        times = -(-events_wanted // n)
        p = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=self.project, env=self.env)
        self.addCleanup(p.kill)
        out = []
        reader = threading.Thread(target=lambda: out.append(p.stdout.read()))
        reader.start()
        p.stdin.write(head)
        for _ in range(times):
            p.stdin.write(block)
        p.stdin.write(b'{"ev":"end","events":%d}\n' % (times * n))
        p.stdin.close()
        reader.join(TIMEOUT)
        _, status, used = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
        self.assertIn(p.returncode, (0, 1))
        return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, out[0]

    def setUp(self):
        super().setUp()
        self.head, self.body = self.lines()

    def check(self, *options):
        _, memory, out = self.feed([WARDER, "replay", "--json", *options, "-"], EVENTS)
        report = json.loads(out)
        self.assertGreaterEqual(report["replay"]["events"], EVENTS)
        self.assertTrue(report["replay"]["traces"][0]["complete"])
        if "ASAN_OPTIONS" not in os.environ:
            self.assertLess(memory, 100)

    def test_flat_memory_as_recorded(self):
        self.check()

    def test_flat_memory_under_another_policy(self):
        self.check("--policy", self.policy)

    @needs("jq")
    def test_at_least_four_times_the_speed_of_jq(self):
        ours, _, _ = self.feed([WARDER, "replay", "-"], COMPARED)
        judged, _, _ = self.feed([WARDER, "replay", "--policy", self.policy, "-"], COMPARED)
        jq, _, _ = self.feed(["jq", "-c", "select(.ret<0)"], COMPARED)
        self.assertLess(4 * ours, jq)
        self.assertLess(4 * judged, jq)


if __name__ == "__main__":
    main()
