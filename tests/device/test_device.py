"""A device rank computes what a rank on cores does; any number of ranks, through OpenCL (pocl on a CPU).

FEMBENCH_TEST_DEVICE=gpu tests the GPU of the host instead.
"""

import itertools
import os

import numpy as np
import pytest
from msgspec import structs
from ranks import launched_by_mpi

from fembench.base.errors import InputError
from fembench.bench.describe import check_memory
from fembench.bench.prepare import prepare
from fembench.characterize.speeds import probes_of
from fembench.host.host import host_facts
from fembench.ranks.comm import alone
from fembench.records.case import Case
from fembench.records.record import part_held
from fembench.solve.from_names import build_solver
from fembench.solve.iterate import StoppingCriterion
from fembench.solve.operators import build_operator, by_elements_on_device, on_device
from fembench.timing.tracer import NullTracer, make_tracer

KIND = os.environ.get("FEMBENCH_TEST_DEVICE", "opencl")
pytest.importorskip(
    "pyopencl" if KIND == "opencl" else "cupy",
    reason="pyopencl is not installed; FEMBENCH_WITH_OPENCL=1 tests/run.sh installs it",
)
find = pytest.importorskip("fembench.device.find")
device_module = pytest.importorskip("fembench.device.device")
MESHES = ("m1", "box:8x5x8:hex8")
FIXED = StoppingCriterion(fixed=25)
TIGHT = 1e-12


@pytest.fixture(scope="module")
def device():
    """Ranks under mpiexec share the cores: pocl computes with one thread."""
    with pytest.MonkeyPatch.context() as patch:
        if launched_by_mpi():
            patch.setenv("POCL_MAX_PTHREAD_COUNT", "1")
        yield find.open_device(KIND, 0)


class Pair:
    """The same system for a rank on cores, and for one on a device."""

    def __init__(self, comm, device, mesh, **fields):
        self.comm, self.device = comm, device
        self.case = Case.of(ranks=comm.size, mesh=mesh, **fields)
        self.prepared = prepare(comm, self.case, NullTracer())
        self.parts = self.prepared.sub, *self.prepared.lame

    def solve(self, device):
        p, method = self.prepared, self.case.method
        tracer = make_tracer("counter")
        solver = build_solver(
            method, p.sub, p.interface, p.lame, tracer, overlap=method.overlap, device=device
        )
        return solver.solve(p.rhs, FIXED), tracer.counts()


def close(found, expected):
    """To rounding, relative to the largest entry."""
    np.testing.assert_allclose(found, expected, rtol=0, atol=TIGHT * np.abs(expected).max())


@pytest.mark.mpi
@pytest.mark.parametrize("mesh", MESHES)
def test_a_product_is_that_of_the_host(comm, device, mesh):
    pair = Pair(comm, device, mesh)
    cores, there = build_operator("bsr", *pair.parts), on_device(*pair.parts, device)
    v = np.random.default_rng(comm.rank).standard_normal(pair.prepared.interface.n_dofs)
    close(there.apply(v), cores.apply(v))
    d, q = device.empty(v.size), device.empty(v.size)
    d[:] = v
    product = there.bind(d, q)
    assert product.interface() + product.interior() == pytest.approx(v @ cores.apply(v), rel=TIGHT)
    assert there.flops == cores.flops
    assert there.matrix_bytes == cores.matrix_bytes
    np.testing.assert_array_equal(there.diagonal(), cores.diagonal())


@pytest.mark.mpi
@pytest.mark.parametrize("problem", ["corner-load", "bar"])
@pytest.mark.parametrize("mesh", MESHES)
def test_a_product_element_by_element_is_that_of_the_host_and_repeats_to_the_last_bit(
    comm, device, mesh, problem
):
    pair = Pair(comm, device, mesh, problem=problem)
    fixed = comm.allreduce(int(pair.prepared.sub.fixed.sum()))
    assert (fixed > 0) == (problem == "bar")  # dofs of nodes that are free in other directions
    cores, there = build_operator("ebe", *pair.parts), by_elements_on_device(*pair.parts, device)
    v = np.random.default_rng(comm.rank).standard_normal(pair.prepared.interface.n_dofs)
    close(there.apply(v), cores.apply(v))
    np.testing.assert_array_equal(there.apply(v).view(np.int64), there.apply(v).view(np.int64))
    d, q = device.empty(v.size), device.empty(v.size)
    d[:] = v
    product = there.bind(d, q)
    assert product.interface() + product.interior() == pytest.approx(v @ cores.apply(v), rel=TIGHT)
    assert there.flops == cores.flops
    np.testing.assert_array_equal(there.diagonal(), cores.diagonal())


METHODS = [
    ("none", "sym"),
    ("jacobi", "bsr"),
    ("block-jacobi", "ebe"),
    ("chebyshev", "sym"),
    ("chebyshev", "ebe"),
]


@pytest.mark.mpi
@pytest.mark.parametrize("which", ["all", "even", "odd"])
@pytest.mark.parametrize(("precond", "storage"), METHODS)
def test_an_iteration_is_that_of_the_host_in_lists_of_any_kind(comm, device, precond, storage, which):
    pair = Pair(comm, device, MESHES[comm.size % 2], precond=precond, storage=storage)
    mine = which == "all" or comm.rank % 2 == (which == "odd")
    (cores, counts), (there, there_counts) = pair.solve(None), pair.solve(device if mine else None)
    close(there.x, cores.x)
    np.testing.assert_allclose(there.residuals, cores.residuals, rtol=0, atol=TIGHT * cores.residuals[0])
    np.testing.assert_array_equal(there_counts, counts)  # the same phases
    for own, other in pair.prepared.interface.copies(there.x):
        np.testing.assert_array_equal(own.view(np.int64), other.view(np.int64))


@pytest.mark.mpi
@pytest.mark.parametrize("how", [{"overlap": False}, {"overlap": False, "exchange": "blocking"}])
def test_messages_may_go_one_after_the_other(comm, device, how):
    pair = Pair(comm, device, "m1", precond="block-jacobi", **how)
    close(pair.solve(device)[0].x, pair.solve(None)[0].x)


@pytest.mark.mpi
@pytest.mark.parametrize(("precond", "storage"), [("block-jacobi", "sym"), ("chebyshev", "ebe")])
def test_a_solve_repeats_to_the_last_bit(comm, device, precond, storage):
    pair = Pair(comm, device, "m1", precond=precond, storage=storage)
    (one, _), (two, _) = pair.solve(device), pair.solve(device)
    np.testing.assert_array_equal(one.x.view(np.int64), two.x.view(np.int64))
    assert one.residuals == two.residuals


def test_a_matrix_is_copied_slice_by_slice(device, monkeypatch):
    pair = Pair(alone(), device, "m1")
    v = np.random.default_rng(3).standard_normal(pair.prepared.interface.n_dofs)
    at_once = on_device(*pair.parts, device).apply(v)
    monkeypatch.setattr(device_module, "SLICE", 1000)
    np.testing.assert_array_equal(on_device(*pair.parts, device).apply(v), at_once)


@pytest.mark.parametrize("size", [1, 127, 129, 4097])
def test_vectors_are_filled_and_copied(device, size):
    values = np.random.default_rng(size).standard_normal(size)
    v, w = device.empty(size), device.empty(size)
    v[:] = values
    w[:] = v
    np.testing.assert_array_equal(np.asarray(w), values)
    w[:] = 2.5
    np.testing.assert_array_equal(np.asarray(w), 2.5)


def test_inner_products_weigh_the_shared_entries(device):
    n, shared = 3 * 700, 3 * 41
    draw = np.random.default_rng(7).standard_normal
    host = {name: draw(n) for name in "xrdqz"}
    there = {name: device.empty(n) for name in host}
    for name, values in host.items():
        there[name][:] = values
    weights = np.abs(draw(shared))
    w = np.concatenate([np.ones(n - shared), weights])
    vectors = device.CGVectors(*there.values(), weights)
    assert vectors.dot_dq() == pytest.approx(host["d"] @ (w * host["q"]), rel=TIGHT)
    assert vectors.dot_rz() == pytest.approx(host["r"] @ (w * host["z"]), rel=TIGHT)
    r = host["r"] - 0.3 * host["q"]
    assert vectors.step(0.3) == pytest.approx(r @ (w * r), rel=TIGHT)
    close(np.asarray(there["x"]), host["x"] + 0.3 * host["d"])
    vectors.direction(0.5)
    close(np.asarray(there["d"]), host["z"] + 0.5 * host["d"])


def test_bandwidth_is_measured_and_the_better_way_to_read_counts(device):
    roof, triad = device.roof(1 << 20, 0.05), device.triad(1 << 20, 0.05)
    assert 0 < 0.2 * triad < roof < 1e14


def test_a_device_is_measured_by_the_same_probes_as_the_core_beside_it(device):
    made = [probes_of(host_facts(), 2, len, where, mixed=True) for where in (device, None)]
    there, cores = ([*itertools.takewhile(lambda p: p.level == "L2", probes)] for probes in made)
    assert [(p.phase, p.storage, p.units) for p in there] == [(p.phase, p.storage, p.units) for p in cores]
    assert {"pack", "unpack"} < {p.phase for p in there}
    assert {p.storage for p in there} == {"", "sym", "bsr", "ebe"}
    for probe in there:
        probe.call()
        if probe.before:
            probe.before()


@pytest.mark.parametrize("storage", ["sym", "ebe"])
def test_a_part_that_a_device_cannot_hold_is_refused_in_one_line(device, storage, monkeypatch):
    prepared = structs.replace(Pair(alone(), device, "m1").prepared, device=device)
    case = Case.of(mesh="m1", storage=storage, device=KIND)
    check_memory(alone(), case, prepared)
    whole = device.said
    monkeypatch.setattr(device, "said", whole._replace(memory_bytes=100_000))
    said = r"device of rank 0: its part needs \d+ KiB, .* has 97\.7 KiB, room for \d+ of its \d+ cells: give"
    with pytest.raises(InputError, match=said) as refused:
        check_memory(alone(), case, prepared)
    rank, part = part_held(str(refused.value))
    assert rank == 0
    assert 0 < part < 1
    just = int(100_000 * 0.97 / part)  # planned for 0.9 of it, refused above 0.95
    monkeypatch.setattr(device, "said", whole._replace(memory_bytes=just))
    check_memory(alone(), case, prepared)


def test_devices_are_taken_in_turn_and_described(device):
    again = find.open_device(KIND, 1000)
    assert again.said in find.seen()
    assert device.said.memory_bytes > 1 << 20
    assert " by " in device.said.compiler
