"""A million calls, one in a hundred refused: with and without the fast path the same is told."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "live"))

import run_help  # noqa: E402
from test_fast import FastCase  # noqa: E402
from test_fast_corners import stress  # noqa: E402


class Stress(FastCase):
    def test_a_million_calls(self):
        stress(self, 350_000, 0, seed=11)
        stress(self, 75_000, 4, seed=12)


if __name__ == "__main__":
    run_help.main()
