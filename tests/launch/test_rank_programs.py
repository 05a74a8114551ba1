"""The programs that ranks are started with exist, and no other."""

import importlib.util
import re
from pathlib import Path

import pytest

import fembench

ROOT = Path(fembench.__file__).parent
STARTED = sorted(
    {
        name
        for path in ROOT.rglob("*.py")
        for name in re.findall(r'"(fembench\.[\w.]*rank)"', path.read_text(encoding="utf-8"))
    }
)


def test_every_module_that_ranks_run_is_started_somewhere():
    modules = {
        path.relative_to(ROOT.parent).with_suffix("").as_posix().replace("/", ".")
        for path in ROOT.rglob("*.py")
        if "sys.exit(serve(" in path.read_text(encoding="utf-8")
    }
    assert modules == set(STARTED)


@pytest.mark.parametrize("module", STARTED)
def test_the_program_that_ranks_are_started_with_exists(module):
    assert importlib.util.find_spec(module)
