"""The examples for other programs run, and report what `fembench run` prints."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
BIN = Path(sys.executable).parent
REFRAME = Path(os.environ.get("FEMBENCH_VENV", sys.prefix)) / "readers" / "bin" / "reframe"


def printed(folder, *words):
    """What a program prints in a folder, where it finds fembench; its exit status is 0."""
    variables = os.environ | {"PATH": f"{BIN}:{os.environ['PATH']}", "HOME": str(folder)}
    done = subprocess.run([*map(str, words)], cwd=folder, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_reframe_passes_the_example_and_reports_the_figure_of_merit(tmp_path):
    if not REFRAME.exists():
        pytest.skip("no ReFrame in the environment of the readers")
    case = ("-S", "Elasticity.mesh=m1", "-S", "Elasticity.quick=yes")
    said = printed(
        tmp_path, REFRAME, "-c", EXAMPLES / "reframe/elasticity.py", "-r", *case, "--prefix", tmp_path
    )
    assert "Ran 1/1 test case(s) from 1 check(s) (0 failure(s)" in said
    (log,) = (tmp_path / "output").rglob("rfm_job.out")
    merit = re.search(r"figure of merit\W+([\d.]+) MDOF/s", log.read_text())[1]
    assert re.search(rf"figure_of_merit: {float(merit):g}(\.0)? MDOF/s", said)


@pytest.mark.slow
def test_jube_runs_the_example_and_tabulates_the_figure_of_merit(tmp_path):
    if not shutil.which("jube"):
        pytest.skip("no JUBE")
    printed(
        tmp_path,
        "jube",
        "run",
        EXAMPLES / "jube/elasticity.xml",
        "-t",
        "quick",
        "--outpath",
        tmp_path / "runs",
    )
    table = printed(tmp_path, "jube", "result", "-a", tmp_path / "runs")
    rows = [re.split(r"\s*\|\s*", line.strip(" |")) for line in table.splitlines() if "m1" in line]
    assert [row[:2] for row in rows] == [["m1", "1"], ["m1", "2"]]
    logs = sorted((tmp_path / "runs").rglob("stdout"))
    merits = [re.search(r"figure of merit\W+([\d.]+) MDOF/s", log.read_text())[1] for log in logs]
    assert [float(row[3]) for row in rows] == [float(merit) for merit in merits]
    assert {row[2] for row in rows} <= {"VALID", "PROVISIONAL"}
