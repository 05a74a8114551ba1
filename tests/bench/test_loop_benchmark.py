"""The benchmark of the loop runs, and its loop in C does the work of the loop in Python."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "benchmarks" / "loop.py"


@pytest.mark.slow
def test_the_loop_is_measured_beside_its_twin_in_c():
    """The program itself ends with an error where the two solutions differ in a bit."""
    command = [sys.executable, str(PROGRAM), "--ranks", "1,2", "--turns", "8", "--iterations", "20", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    assert [r["ranks"] for r in results] == [1, 2]
    for result in results:
        assert {"C", "Python, silent", "Python, standard"} < set(result["times"])
        assert all(0 < t["minimum"] <= t["median"] for t in result["times"].values())
        assert result["left_over"] > 0
