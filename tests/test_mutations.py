"""benchmarks/mutations.py: which mutants there are, which tests they meet, and ten of them tried."""

import ast
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SAMPLE = '''"""A text of 1 + 1."""
WIDTH: int = 3

def area(a, b=0.0, on=True):
    """1 + 1"""
    if not on:
        raise ValueError(f"{a + 1}")
    return min(a * b, -a) if a < b and on else a - b
'''


@pytest.fixture
def program(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import mutations

    return mutations


def test_every_kind_of_mutant_is_found_once_and_texts_stay(program):
    found = program.mutants(Path("area.py"), SAMPLE)
    changes = {m.change for m in found}
    assert {
        "3 -> 4", "0.0 -> 1.0", "True -> False", "not on -> on", "a * b -> a / b", "-a -> a", "a - b -> a",
        "a - b -> a + b", "a < b -> a <= b", "a < b and on -> a < b or on",
        "min(a * b, -a) -> max(a * b, -a)",
        "min(a * b, -a) if a < b and on else a - b -> a - b if a < b and on else min(a * b, -a)",
    } == changes  # fmt: skip
    assert len(found) == len(changes)
    for m in found:
        assert ast.dump(ast.parse(m.applied(SAMPLE))) != ast.dump(ast.parse(SAMPLE))
        assert m.applied(SAMPLE).count("1 + 1") == 2
    assert [m.line for m in found] == sorted(m.line for m in found)


def test_a_sample_is_of_every_package_valid_and_the_same_again(program):
    sample = program.drawn(program.sources([]), 300, seed=1)
    assert len(sample) >= 300
    counts = Counter(program.package_of(m.path) for m in sample)
    assert counts.keys() == {*program.PACKAGES}
    assert min(counts.values()) >= 25
    for m in sample:
        ast.parse(m.applied((ROOT / m.path).read_text(encoding="utf-8")))
    small = program.sources(["stats"])
    assert (
        program.drawn(small, 9, seed=1) == program.drawn(small, 9, seed=1) != program.drawn(small, 9, seed=2)
    )


def test_every_module_meets_tests_and_first_those_that_import_it(program):
    direct, room = program.tests_of(Path("fembench/weights/slowness.py"))
    assert "tests/weights/test_tasks_per_host.py" in direct
    assert "tests/weights/test_scaling.py" in room
    # by a helper of tests that imports it
    assert (
        "tests/records/test_hlogp.py" in program.tests_of(Path("fembench/studies/thesis_001/grid_plan.py"))[0]
    )
    for path in program.sources([]):
        assert path.name == "__init__.py" or program.tests_of(path), path


def outcome(program, verdict):
    mutant = program.Mutant(Path("fembench/stats/summary.py"), 1, "", "term", "a + b", "a", 0, 5)
    return program.Outcome(mutant, verdict, "", 1.0)


@pytest.mark.parametrize(("survived", "status"), [(1, 0), (2, 1)])
def test_less_than_nine_of_ten_is_a_failure_and_accepted_ones_do_not_count(program, survived, status, capsys):
    verdicts = ["killed"] * 8 + ["timeout"] + ["accepted"] * 5 + ["survived"] * survived
    assert program.report([outcome(program, v) for v in verdicts]) == status
    assert "fembench/stats/summary.py:1: term: a + b -> a" in capsys.readouterr().out


def test_accepted_survivors_have_reasons_and_are_still_in_the_code(program):
    for accepted in program.accepted_mutants():
        text = (ROOT / accepted.path).read_text(encoding="utf-8")
        found = {(m.source, m.change) for m in program.mutants(Path(accepted.path), text)}
        assert (accepted.line, accepted.change) in found
        assert len(accepted.reason.split()) > 3


@pytest.mark.slow
def test_ten_mutants_are_tried_in_a_copy_and_the_tree_stays_as_it_was(tmp_path):
    module = ROOT / "fembench" / "weights" / "slowness.py"
    before = module.read_text()
    line = [
        sys.executable,
        "benchmarks/mutations.py",
        "--only",
        "weights/slowness",
        "--count",
        "10",
        "--direct",
    ]
    done = subprocess.run(
        [*line, "--json", str(tmp_path / "m.json")], cwd=ROOT, capture_output=True, text=True
    )
    outcomes = json.loads((tmp_path / "m.json").read_text())
    assert len(outcomes) == 10, done.stderr
    killed = [o for o in outcomes if o["verdict"] in ("killed", "timeout")]
    assert len(killed) >= 8
    assert {o["by"] for o in killed} & {"tests/weights/test_tasks_per_host.py"}
    assert done.returncode == int(len(killed) / 10 < 0.9)
    assert module.read_text() == before
