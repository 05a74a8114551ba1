"""benchmarks/mutations.py: small faults are made everywhere but where they are none, and tests meet them."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
TEXT = '''
"""1 + 1"""
from typing import Literal

Level = Literal["a"]

def f(x: int | 3, *, y=2) -> Literal[4]:
    assert x < 5
    if x <= -y and y:
        raise ValueError(x + 1)
    return max(x - 0.5, (x + y) * 2) if x is None else [f"{x + 1:.2f}", "ä" + "b", table(digits=3)]
'''
EXPECTED = [  # (kind, what is replaced, by what)
    ("constant", "2", "3"),
    ("branch", "x <= -y and y", "not (x <= -y and y)"),
    ("compare", " <= ", " < "),
    ("sign", "-", ""),
    ("branch", " and ", " or "),
    ("extreme", "max", "min"),
    ("term", "x - 0.5", "(x)"),
    ("sign", " - ", " + "),
    ("constant", "0.5", "0.55"),
    ("term", "x + y", "(x)"),
    ("sign", " + ", " - "),
    ("sign", ") * ", ") / "),
    ("constant", "2", "3"),
    ("branch", "x is None", "not (x is None)"),
    ("compare", " is ", " is not "),
]


@pytest.fixture
def mutations(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import mutations

    return mutations


def test_every_kind_of_fault_is_made_and_texts_annotations_and_messages_are_left_alone(mutations):
    found = mutations.mutations(TEXT)
    for one in found:
        ast.parse(one.of(TEXT))
    text = TEXT.encode()
    assert [(m.kind, text[m.begin : m.end].decode(), m.put) for m in found] == EXPECTED
    assert (found[2].before, found[2].after) == ("if x <= -y and y:", "if x < -y and y:")


def test_a_mutated_module_is_imported_by_every_process_that_a_test_starts(tmp_path):
    (tmp_path / "mutant").write_text("fembench.base.units\nplural = 'changed'\n")
    line = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]], check=True)"
    child = "import fembench.base.units as u, fembench.base.errors; print(u.plural, u.__file__)"
    variables = {"PYTHONPATH": str(BENCHMARKS / "mutant"), "FEMBENCH_MUTANT": str(tmp_path / "mutant")}
    done = subprocess.run([sys.executable, "-c", line, child], env=variables, capture_output=True, text=True)
    assert done.stdout.startswith("changed "), done.stderr
    assert done.stdout.endswith("fembench/base/units.py\n")


def test_a_fault_that_tests_notice_is_killed_and_one_that_nobody_sees_survives(
    mutations, tmp_path, monkeypatch
):
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_a.py").write_text("def test_that_fails_without_a_mutation(): assert False")
    (tmp_path / "test_b.py").write_text(
        "from fembench.stats.outliers import FEWEST_ALIKE\ndef test(): assert FEWEST_ALIKE == 3"
    )
    monkeypatch.setattr(mutations, "ROOT", tmp_path)
    monkeypatch.setattr(mutations, "tests_of", lambda m: [mutations.Tests((), "not mpi", (".",))])
    file = "fembench/stats/outliers.py"
    text = (BENCHMARKS.parent / file).read_text() + "\nUNUSED = 1\n"
    made = [m for m in mutations.mutations(text) if m.before.startswith(("FEWEST_ALIKE = 3", "UNUSED"))]
    fates = {m.before: mutations.fate(mutations.Mutant("stats", file, text, m)) for m in made}
    assert list(fates.values()) == ["killed", "survived"], fates


def test_accepted_survivors_are_mutations_of_the_files_as_they_are_and_have_reasons(mutations):
    listed = mutations.tomllib.loads(mutations.ACCEPTED.read_text())["accepted"]
    assert all(len(one["why"]) > 20 for one in listed)
    for one in listed:
        text = (mutations.ROOT / one["file"]).read_text()
        made = {(m.kind, m.before, m.after) for m in mutations.mutations(text)}
        assert (one["kind"], one["before"], one["after"]) in made, one
