"""A hundred thousand calls of every kind on swapped names; see live/test_paths_race.py."""

import os
import pathlib
import sys

os.environ.setdefault("WARDER_CALL_RACES", "12500")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "live"))

import test_paths_race
from run_help import both_users, main


@both_users
class Long(test_paths_race.CallRaces):
    pass


if __name__ == "__main__":
    main()
