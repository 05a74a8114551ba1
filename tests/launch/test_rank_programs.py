"""The programs that ranks are started with exist, and no other; and which rank one will be."""

import re
from pathlib import Path

import pytest

import fembench
from fembench.launch.rank_start import rank_given

ROOT = Path(fembench.__file__).parent
STARTED = {
    name
    for path in ROOT.rglob("*.py")
    for name in re.findall(r'"(fembench\.[\w.]*rank)"', path.read_text(encoding="utf-8"))
}


def test_every_module_that_ranks_run_is_started_somewhere_and_has_a_program():
    modules = {
        path.relative_to(ROOT.parent).with_suffix("").as_posix().replace("/", ".")
        for path in ROOT.rglob("*.py")
        if re.search("^PROGRAM = ", path.read_text(encoding="utf-8"), re.M)
    }
    assert modules == STARTED


@pytest.mark.parametrize(
    ("environment", "rank"),
    [
        ({}, None),
        ({"PMI_RANK": "", "SLURM_PROCID": "?"}, None),
        ({"SLURM_PROCID": "4"}, 4),
        ({"PMI_RANK": "3", "PMIX_RANK": "0", "SLURM_PROCID": "0"}, 3),  # hydra in an interactive step
    ],
)
def test_the_rank_is_known_from_the_launcher_before_mpi_starts(environment, rank):
    assert rank_given(environment) == rank
