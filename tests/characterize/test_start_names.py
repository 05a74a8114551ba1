"""The programs that ranks are started with exist."""

import importlib.util
import re
from pathlib import Path

import pytest

import fembench

ROOT = Path(fembench.__file__).parent
STARTED = {
    f"fembench.characterize.{name}"
    for file in ("start", "load_now")
    for name in re.findall(r'"(\w+_rank)"', (ROOT / "characterize" / f"{file}.py").read_text())
}


def test_speeds_messages_and_load_have_a_program_each():
    assert len(STARTED) == 3


@pytest.mark.parametrize("module", sorted(STARTED))
def test_the_program_that_ranks_are_started_with_exists(module):
    assert importlib.util.find_spec(module)
