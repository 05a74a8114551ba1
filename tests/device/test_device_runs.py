"""Runs with device ranks, whole: their records, their shares, and what is refused."""

import subprocess
import sys
from pathlib import Path

import pytest
from msgspec import structs

import fembench
from fembench.device import find
from fembench.errors import InputError
from fembench.methods.lookup import device_by_rank
from fembench.model.workload import workload
from fembench.records.case import new_case
from fembench.records.store import load
from fembench.records.validity import judge
from fembench.report.roofline import held_in, partly_cached
from fembench.weights.make import by_time
from fembench.weights.proof import Trail, without_weakest

needs_opencl = pytest.mark.skipif(
    "pyopencl" not in find.libraries(),
    reason="pyopencl is not installed; FEMBENCH_WITH_OPENCL=1 tests/run.sh installs it",
)


@pytest.mark.parametrize(
    ("text", "ranks", "found"),
    [
        ("cpu", 2, "cpu cpu"),
        ("gpu", 3, "gpu gpu gpu"),
        ("gpu, cpu", 2, "gpu cpu"),
        ("gpu,3*cpu", 4, "gpu cpu cpu cpu"),
        ("2*opencl,cpu", 3, "opencl opencl cpu"),
    ],
)
def test_a_list_names_the_device_of_each_rank(text, ranks, found):
    assert device_by_rank(text, ranks) == tuple(found.split())


@pytest.mark.parametrize("text", ["", "tpu", "gpu,", "x*gpu", "-1*gpu", "gpu*2", "1.5*cpu"])
def test_other_words_are_refused(text):
    with pytest.raises(InputError, match="expected names as in gpu"):
        device_by_rank(text, 2)


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"device": "gpu,cpu", "ranks": 3}, "names 2 ranks; expected 3"),
        ({"device": "99999999999999*gpu", "ranks": 3}, "expected 3"),
        ({"device": "gpu", "storage": "csr"}, "storage 'csr': expected sym or bsr"),
        (
            {"device": "gpu", "precond": "multigrid"},
            "precond 'multigrid': expected none, jacobi or block-jac",
        ),
        ({"device": "gpu", "recurrence": "pipelined"}, "recurrence 'pipelined': expected standard"),
        ({"device": "gpu", "solver": "petsc", "storage": "baij"}, "solver petsc: expected solver own"),
        ({"device": "gpu,cpu", "ranks": 2, "balance": "amortised"}, "expected no balance"),
    ],
)
def test_a_method_without_device_kernels_is_refused_in_one_line(fields, line):
    with pytest.raises(InputError, match=line) as refused:
        new_case({"mesh": "m1", **fields}, "case")
    assert "\n" not in str(refused.value)


def test_cores_by_name_are_what_every_case_has():
    new_case({"mesh": "m1", "device": "cpu,cpu", "ranks": 2, "storage": "csr"}, "case")


def test_a_device_has_no_prices_yet():
    with pytest.raises(InputError, match="device 'gpu' has no prices"):
        workload(new_case({"mesh": "m1", "device": "gpu"}, "case"))


def test_a_device_that_is_not_there_is_one_line(monkeypatch, tmp_path):
    monkeypatch.setenv("OCL_ICD_VENDORS", str(tmp_path))  # no driver of OpenCL
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    typed = [sys.executable, "-m", "fembench", "run", "m1", "--device", "gpu", "--results", str(tmp_path)]
    done = subprocess.run(typed, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    lines = [line for line in done.stderr.splitlines() if line.startswith("fembench:")]
    assert len(lines) == 1
    assert "device 'gpu': " in lines[0]


def test_ranks_on_cores_import_nothing_of_devices():
    code = (
        "import sys, fembench.bench.case_run, fembench.solve.cg; "
        "print(*(m for m in sys.modules if m.startswith(('fembench.device', 'cupy', 'pyopencl'))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


GPU = Path(__file__).parents[2] / "results/reference/gpu"
RECORDS = sorted(GPU.glob("*.json"))


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_a_record_of_a_gpu_is_valid_and_no_cache_of_its_host_holds_the_matrix(path):
    record = load(path)
    assert judge(record).status == "VALID"
    assert "H100" in record.environment.devices[0].name
    tiny = (1000,) * record.case.placement.ranks
    for solve in (record.solve, structs.replace(record.solve, matrix_bytes=tiny)):
        one = structs.replace(record, solve=solve)
        assert held_in(one) == ""
        assert not partly_cached(one)


def test_a_rank_that_is_left_out_takes_its_device_along():
    record = load(next(path for path in RECORDS if "-p16-" in path.name))
    weights = by_time([record])
    trail = Trail(rounds=[(record, weights)], tried=[(weights, record)])
    left = without_weakest(record.case.with_(shares=""), trail)
    assert left is not None
    assert left.host == ""
    assert left.owner != "rank 0"
    assert left.case.devices == ("gpu", *["cpu"] * 14)


@pytest.fixture
def quick(tmp_path, monkeypatch):
    """Where runs are kept; pocl computes with one thread."""
    monkeypatch.setenv("POCL_MAX_PTHREAD_COUNT", "1")
    return {"results": str(tmp_path), "partitioner": "rcb", "quick": True}


@needs_opencl
def test_a_record_names_the_device_of_every_rank(quick):
    (record,) = fembench.run("m1", ranks=2, sets=2, device="opencl,cpu", precond="block-jacobi", **quick)
    first, second = record.environment.devices
    assert first.name
    assert first.memory_bytes
    assert first.driver
    assert first.compiler
    assert second.name == ""
    assert "when the device has finished" in record.clock.devices
    rules = [rule for rule in record.verdict.rules if rule.id[0] == "A" or rule.id == "B3"]
    assert len(rules) > 5
    assert [rule for rule in rules if rule.id != "B3" and rule.ok is False] == []


BUSY = 10.0  # percent of the CPU time that others use, above which times say nothing


@needs_opencl
@pytest.mark.slow
@pytest.mark.alone
def test_shares_of_a_mixed_run_follow_the_speeds_and_the_answer_does_not(quick):
    """A device of four times the speed of a core, emulated: its share is four fifths."""
    alone = fembench.run("m3", iterations=60, sets=2, **quick)
    mixed = {"ranks": 2, "device": "opencl,cpu", "emulate": "1,0.25", "dilate": 4, "iterations": 60}
    equal = [*(fembench.run("m3", sets=5, **mixed, **quick)[0] for _ in range(3))]
    found = by_time(equal)
    shares = f"{found.ranks[0].share}:{found.ranks[1].share}"
    (weighted,) = fembench.run("m3", shares=shares, sets=2, **mixed, **quick)
    assert weighted.reference.source == alone[0].id
    same = [rule for rule in weighted.verdict.rules if rule.id in ("A4", "A5")]
    assert same
    assert all(rule.ok for rule in same)
    others = max(record.environment.hosts[0].others_percent for record in equal)
    if others > BUSY:
        pytest.skip(f"other programs used {others:.0f} % of the CPU time")
    assert found.ranks[0].share == pytest.approx(0.8, rel=0.03)
