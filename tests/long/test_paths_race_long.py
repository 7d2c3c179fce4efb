"""A hundred thousand swapped names; see live/test_paths_race.py."""

import os
import pathlib
import sys

os.environ.setdefault("WARDER_RACES", "8500")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "live"))

import test_paths_race
from run_help import both_users, main


@both_users
class Long(test_paths_race.Races):
    pass


if __name__ == "__main__":
    main()
