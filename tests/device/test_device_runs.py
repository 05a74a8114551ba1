"""Runs with device ranks, whole: their records, their shares, and what is refused."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs
from planted_profile import one_speed, planted_profile
from planted_runs import study_of

import fembench
from fembench.bench.campaign_file import run_id
from fembench.bench.describe import device_facts
from fembench.cli.main import main
from fembench.device import find
from fembench.errors import InputError
from fembench.methods.lookup import device_by_rank
from fembench.model.cg import prices
from fembench.model.rates import rates_of
from fembench.model.slots import slots_of
from fembench.model.workload import workload
from fembench.records.binding import held_in, partly_cached
from fembench.records.case import new_case
from fembench.records.record import DeviceFacts
from fembench.records.store import load
from fembench.records.validity import judge
from fembench.weights.make import by_time
from fembench.weights.observe import room_on_devices
from fembench.weights.proof import Trail, each_kind_alone
from fembench.workflows.tune import TuneRuns, find_weights

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
        ("0*gpu, 2 * cpu", 2, "cpu cpu"),
    ],
)
def test_a_list_names_the_device_of_each_rank(text, ranks, found):
    assert device_by_rank(text, ranks) == tuple(found.split())


@pytest.mark.parametrize("text", ["", "tpu", "gpu,", "x*gpu", "-1*gpu", "gpu*2", "1.5*cpu"])
def test_other_words_are_refused(text):
    with pytest.raises(InputError, match="expected cpu, gpu or opencl, or a list by rank as in gpu,15"):
        device_by_rank(text, 2)


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"device": "gpu,cpu", "ranks": 3}, "names 2 ranks; expected 3"),
        ({"device": "9" * 5000 + "*gpu", "ranks": 3}, "names more than 1000000 ranks; expected 3"),
        ({"device": "600000*gpu,600000*cpu", "ranks": 3}, "names more than 1000000 ranks; expected 3"),
        ({"device": "2*gpu", "ranks": 2, "threads": 2}, "threads = 2 with device 'gpu': expected cpu"),
        ({"device": "gpu", "storage": "csr"}, "storage 'csr': expected sym, bsr or ebe"),
        (
            {"device": "gpu", "precond": "multigrid"},
            "precond 'multigrid': expected none, jacobi, block-jacobi or chebyshev",
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


@pytest.mark.parametrize(
    ("spellings", "one"),
    [
        (("2*cpu", "cpu,cpu", " cpu ", "cpu, 0*gpu,cpu"), "cpu"),
        (("2*opencl", "opencl,opencl"), "opencl"),
        (("opencl, cpu", "1*opencl,cpu", "opencl,1*cpu"), "opencl,cpu"),
    ],
)
def test_all_spellings_of_a_list_of_devices_are_one_case_and_one_run(spellings, one):
    expected = new_case({"mesh": "m1", "device": one, "ranks": 2}, "case")
    assert expected.method.device == one
    for text in spellings:
        made = new_case({"mesh": "m1", "device": text, "ranks": 2}, "case")
        assert made == expected
        assert run_id(made, 1) == run_id(expected, 1)
        assert expected.with_(device=text) == expected


def test_cores_by_name_are_what_every_case_has():
    new_case({"mesh": "m1", "device": "cpu,cpu", "ranks": 2, "storage": "csr", "threads": 2}, "case")


def with_copies(profile, devices, seconds):
    """The profile with ranks on these devices, whose copies take `seconds`(bytes)."""
    copies = [
        one_speed(0, phase, "", level, 1, "bytes", 1.0, n, np.full(4, n / seconds(n)))
        for level, n in (("L2", 100), ("L3", 1000), ("memory", 10_000))
        for phase in ("pack", "unpack")
    ]
    return structs.replace(profile, device=devices, speeds=(*profile.speeds, *copies))


def test_a_rank_on_a_device_is_priced_by_its_kernels_and_its_copies():
    """A copy takes 20 us and 1 ns per byte; one below the smallest measured takes as long as that."""
    profile = with_copies(planted_profile((4, 1)), "gpu,cpu", lambda n: 2e-5 + 1e-9 * n)
    work = workload(new_case({"mesh": "m1", "device": "gpu,cpu", "ranks": 2}, "case"))
    slots, rates = slots_of(profile, "sym"), rates_of(profile)
    first, second = prices(work, slots, rates)
    n_bytes = sum(work.parts.message_bytes[0])
    assert 100 < n_bytes < 10_000
    assert first.pack == pytest.approx((2e-5 + 1e-9 * n_bytes,) * 2)
    assert second.pack == (0.0, 0.0)
    assert rates.seconds(0, "pack", 8, 1) == pytest.approx(2.01e-5)
    assert rates.seconds(0, "pack", 0, 1) == 0.0
    assert (
        2000 / 4 / 4e8 < first.product < 2**0.5 * 2000 / 4 / 4e8
    )  # the smallest part, beside a core that ends
    assert work.parts.cells[0] < 1000


def test_a_device_that_gets_one_cell_is_named_in_a_prediction():
    study = study_of(with_copies(planted_profile((4, 1)), "gpu,cpu", lambda n: 2e-5 + 1e-9 * n))
    for shares, told in (("", []), ("1,863", ["2 ranks: rank 0 (gpu) gets one cell: leave it out"])):
        case = new_case({"mesh": "m1", "device": "gpu,cpu", "ranks": 2, "shares": shares}, "case")
        assert study.beyond(study.workload(case)) == told
    cores = new_case({"mesh": "m1", "ranks": 2, "shares": "1,863"}, "case")
    assert study.beyond(study.workload(cores)) == []


def test_a_prediction_needs_a_profile_of_the_same_devices():
    work = workload(new_case({"mesh": "m1", "device": "gpu"}, "case"))
    profile = planted_profile((1,))
    with pytest.raises(InputError, match="rank 0 computes on gpu, the profile has cpu in its place"):
        prices(work, slots_of(profile, "sym"), rates_of(profile))


def test_a_device_that_is_not_there_is_one_line(monkeypatch, tmp_path):
    monkeypatch.setenv("OCL_ICD_VENDORS", str(tmp_path))  # no driver of OpenCL
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    typed = [sys.executable, "-m", "fembench", "run", "m1", "--device", "gpu", "--results", str(tmp_path)]
    done = subprocess.run(typed, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    lines = [line for line in done.stderr.splitlines() if line.startswith("fembench:")]
    assert len(lines) == 1
    assert "device 'gpu': " in lines[0]


@pytest.mark.parametrize("raised", ["ImportError", "RuntimeError"])
def test_a_library_that_cannot_be_loaded_is_named_with_its_error(tmp_path, raised):
    for library in ("cupy", "pyopencl"):
        (tmp_path / f"{library}.py").write_text(f"raise {raised}('lib{library}.so is missing\\nmore')")
    code = (
        "from fembench.workflows.doctor import devices\n"
        "from fembench.device.find import open_device\n"
        "print(*[(one.item, one.status, one.found) for one in devices()], sep='\\n')\n"
        "open_device('gpu', 0)"
    )
    where = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=where
    )
    said = [f"{name} cannot be used: lib{name}.so is missing" for name in ("cupy", "pyopencl")]
    assert done.stdout.splitlines() == [str(("device", "problem", line)) for line in reversed(said)]
    assert done.stderr.splitlines()[-1].endswith(f"InputError: device 'gpu': {'; '.join(said)}")


def test_ranks_on_cores_import_nothing_of_devices():
    code = (
        "import sys, fembench.bench.case_run, fembench.solve.cg; "
        "print(*(m for m in sys.modules if m.startswith(('fembench.device', 'cupy', 'pyopencl'))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_ranks_that_share_a_device_share_its_memory_and_each_that_has_its_own_has_all():
    """Slurm may show each rank one GPU of its host: all of them are number 0, with addresses of their own."""
    gpu = DeviceFacts("Some GPU", 10**9, place="0000:3b:00.0")
    other = structs.replace(gpu, place="0000:86:00.0")
    facts = device_facts([("a", gpu), ("a", other), ("a", gpu), ("b", gpu), ("a", DeviceFacts())])
    assert [one.ranks for one in facts] == [2, 1, 2, 1, 1]
    assert facts[0].room == pytest.approx(0.45e9)
    assert facts[1].room == pytest.approx(0.9e9)
    assert device_facts([("a", DeviceFacts()), ("b", DeviceFacts())]) == ()


GPU = Path(__file__).parents[2] / "results/reference/gpu"
RECORDS = sorted(GPU.glob("*.json"))


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_a_record_of_a_gpu_is_valid_and_no_cache_of_its_host_holds_the_matrix(path):
    record = load(path)
    assert json.loads(path.read_text())["case"]["method"]["device"] == record.case.method.device  # its id
    assert judge(record).status == "VALID"
    assert "H100" in record.environment.devices[0].name
    tiny = (1000,) * record.case.placement.ranks
    for solve in (record.solve, structs.replace(record.solve, matrix_bytes=tiny)):
        one = structs.replace(record, solve=solve)
        assert held_in(one) == ""
        assert not partly_cached(one)


def test_each_kind_of_rank_runs_alone_with_its_devices_and_its_shares():
    record = load(next(path for path in RECORDS if "-p16-" in path.name))
    equal, weights = record.case.with_(shares=""), by_time([record])
    kinds = each_kind_alone(equal, Trail(rounds=[(record, weights)]))
    assert {name: ranks for name, (ranks, _) in kinds.items()} == {
        "device alone": [0],
        "CPU alone": [*range(1, 16)],
    }
    gpu, cores = (case for _, case in kinds.values())
    assert (gpu.devices, gpu.placement.ranks, gpu.placement.shares) == (("gpu",), 1, "")
    assert cores.devices == ("cpu",) * 15
    assert cores.placement.shares.count(",") == 14
    small = structs.replace(record.environment.devices[0], memory_bytes=1 << 20)
    devices = (small, *record.environment.devices[1:])
    full = structs.replace(record, environment=structs.replace(record.environment, devices=devices))
    assert [*each_kind_alone(equal, Trail(rounds=[(full, weights)]))] == ["CPU alone"]


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


@needs_opencl
def test_ranks_that_share_a_device_are_functional_only_and_the_record_says_so(quick):
    (record,) = fembench.run("m1", ranks=2, sets=2, device="opencl", **quick)
    if len(find.seen()) > 1:
        pytest.skip("this host has a device for each of two ranks")
    assert [device.ranks for device in record.environment.devices] == [2, 2]
    (rule,) = [rule for rule in record.verdict.rules if rule.id == "C4"]
    assert rule.state == "not met"
    assert rule.note == "use one rank per device"
    name = record.environment.devices[0].name
    assert rule.value == f"OVERSUBSCRIBED: functional only; 2 ranks share one device ({name})"
    assert record.verdict.status == "PROVISIONAL"


ROOM = 80_000  # bytes of a device that cannot hold half of m1
SMALL = """import fembench.device.opencl as room
whole = room.named
room.named = lambda *device: whole(*device)._replace(memory_bytes={n_bytes})
"""


@needs_opencl
def test_tune_starts_from_the_most_equal_shares_that_a_device_holds(quick, tmp_path, monkeypatch):
    """Python reads sitecustomize when a rank starts."""
    (tmp_path / "sitecustomize.py").write_text(SMALL.format(n_bytes=ROOM))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    fields = {"ranks": 2, "device": "opencl,cpu", "iterations": 5, "sets": 2, "partitioner": "rcb"}
    equal = new_case({"mesh": "m1", **fields}, "case")
    run, trail = TuneRuns(tmp_path, "", 100.0, "fembench tune"), Trail()
    with pytest.raises(InputError, match="room for"):
        run(equal, "equal")
    start = find_weights(equal, run, trail, 1)
    (record, weights) = trail.rounds[0]
    assert record.case == start
    first, second = record.partition.targets
    assert 0.1 < first < 0.5
    assert first + second == pytest.approx(1)
    facts = record.environment.devices[0]
    needed = room_on_devices(record)[0] / record.partition.cells[0]
    assert facts.memory_bytes == ROOM
    assert 0.9 < needed < 1.1  # the device is full, not empty
    said = (
        f"equal parts do not fit into the memory of the devices; runs called equal have shares {first:.6g} : "
    )
    assert any(note.startswith(said) for note in weights.notes)


BUSY = 10.0  # percent of the CPU time that others use, above which times say nothing


@needs_opencl
@pytest.mark.slow
@pytest.mark.alone
def test_tune_finds_the_shares_of_a_device_and_a_core_and_the_answer_does_not_depend_on_them(quick):
    """A device of four times the speed of a core, emulated: its share is four fifths of a bar, whose parts
    have little in common. (Of a cube of this size it is 0.83: interfaces take more of a core's time.)"""
    bar = str(Path(quick["results"]) / "bar.msh")
    assert main(["mesh", "box", "80x6x6", "-o", bar]) == 0
    alone = fembench.run(bar, iterations=60, sets=2, **quick)
    mixed = {"ranks": 2, "device": "opencl,cpu", "emulate": "1,0.25", "dilate": 4, "iterations": 60}
    folder = f"{quick['results']}/tune"  # its runs on one rank are no references of the others
    found = fembench.tune(bar, results=folder, partitioner="rcb", sets=5, seconds=0.0, pairs=1, **mixed)
    share = found.weights.ranks[0].share
    (weighted,) = fembench.run(bar, shares=f"{share}:{1 - share}", sets=2, **mixed, **quick)
    assert weighted.reference.source == alone[0].id
    same = [rule for rule in weighted.verdict.rules if rule.id in ("A4", "A5")]
    assert same
    assert all(rule.ok for rule in same)
    assert set(found.proof.alone) == {"device alone", "CPU alone"}
    records = [load(path) for path in Path(found.runs).glob("*.json")]
    others = max(record.environment.hosts[0].others_percent for record in records)
    if others > BUSY:
        pytest.skip(f"other programs used {others:.0f} % of the CPU time")
    assert share == pytest.approx(0.8, rel=0.03)
