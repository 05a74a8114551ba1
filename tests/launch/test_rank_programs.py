"""The programs that ranks are started with exist, and no other; and which rank one will be."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import fembench
from fembench.base.commands import interpreter
from fembench.launch.rank_start import rank_given

ROOT = Path(fembench.__file__).parent
SOURCES = {
    path.relative_to(ROOT.parent).with_suffix("").as_posix().replace("/", "."): path.read_text("utf-8")
    for path in ROOT.rglob("*.py")
}
STARTS = re.compile(r"import .*\b(measure|rank_program)\b|def rank_program")
NAMED = re.compile(r'"(fembench\.[\w.]+)"')


def test_every_module_that_ranks_run_is_started_somewhere_and_has_a_program():
    programs = {name for name, text in SOURCES.items() if re.search("^PROGRAM = ", text, re.M)}
    started = {name for text in SOURCES.values() if STARTS.search(text) for name in NAMED.findall(text)}
    assert programs == started & set(SOURCES) - {"fembench.launch.rank_start"}


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 has no -P")
def test_programs_import_the_package_that_starts_them_and_not_that_of_the_folder(tmp_path, monkeypatch):
    (tmp_path / "fembench").mkdir()
    (tmp_path / "fembench" / "__init__.py").write_text("raise SystemExit('the package of the folder')")
    monkeypatch.chdir(tmp_path)
    line = interpreter()
    assert line == (sys.executable, "-P")
    package = os.environ | {"PYTHONPATH": str(ROOT.parent)}
    assert subprocess.run([*line, "-m", "fembench", "--version"], env=package).returncode == 0
    monkeypatch.chdir(ROOT.parent)  # a source tree that is not installed
    assert interpreter() == (sys.executable,)


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
