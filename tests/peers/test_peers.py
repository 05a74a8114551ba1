"""Peers: one exported system, solutions that must agree, times only where they do."""

import sys
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest
from mpi_job import cli

from fembench.base.errors import AllocationLostError, InputError, RunFailedError
from fembench.launch import run_job
from fembench.launch.line import job_line
from fembench.peers import catalog, solvers
from fembench.peers.catalog import Entry, PeersJob, Sample
from fembench.peers.contest import PARITY, Contest, check
from fembench.peers.solvers import conjugate_gradients, make_parallel, make_serial
from fembench.records.case import Case
from fembench.records.contest import PeerRun, PeersRecord, best_serial, load_peers
from fembench.report.peer_tables import peers_tables
from fembench.report.tables import CampaignResults, conclusions_of
from fembench.solve import petsc
from fembench.solve.iterate import StoppingCriterion
from fembench.timing.tracer import NullTracer


def system_of(mesh, problem="corner-load"):
    """The system of a mesh, on this rank alone."""
    from fembench.bench.prepare import prepare
    from fembench.peers.system import make_system
    from fembench.ranks.comm import alone

    pytest.importorskip("scipy")
    return make_system(prepare(alone(), Case.of(mesh=mesh, problem=problem), NullTracer()))


def petsc_file(path):
    """Integers and doubles of a file of PETSc's: (mark, …), values."""
    raw = path.read_bytes()
    mark = int(np.frombuffer(raw, ">i4", 1)[0])
    if mark == 1211214:
        n = int(np.frombuffer(raw, ">i4", 1, 4)[0])
        return np.frombuffer(raw, ">f8", n, 8)
    from scipy.sparse import csr_matrix

    rows, columns, nonzeros = np.frombuffer(raw, ">i4", 3, 4).tolist()
    lengths = np.frombuffer(raw, ">i4", rows, 16)
    index = np.frombuffer(raw, ">i4", nonzeros, 16 + 4 * rows)
    values = np.frombuffer(raw, ">f8", nonzeros, 16 + 4 * rows + 4 * nonzeros)
    assert len(raw) == 16 + 4 * rows + 12 * nonzeros
    start = np.concatenate([[0], np.cumsum(lengths)])
    return csr_matrix((values.astype(float), index.astype(np.int32), start), shape=(rows, columns))


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    """A whole comparison on two ranks, and the folder it left."""
    pytest.importorskip("scipy")
    folder = tmp_path_factory.mktemp("peers")
    done = cli(
        "peers", "m1", "--ranks", 2, "--repetitions", 3, "--results", folder, "--export", folder / "exported",
        timeout=160,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return load_peers(folder / "peers.json"), folder, done.stdout


def test_all_peers_that_are_here_agree_and_are_timed(record):
    runs = [r for r in record[0].runs if r.status != "missing"]
    assert {r.status for r in runs} == {"timed"}
    assert all(r.difference <= PARITY for r in runs)
    assert all(len(r.solves) == len(r.per_iteration) == 3 for r in runs)
    assert {"own-sym", "own-bsr", "own-csr", "numpy", "scipy"} <= {r.peer for r in runs}
    for precond in ("none", "jacobi"):  # the same iterations, whoever runs the method
        counts = [r.iterations for r in runs if r.precond == precond]
        assert max(counts) - min(counts) <= 2
    ranks = [{r.ranks for r in record[0].runs if r.peer == peer} for peer in ("own-sym", "scipy")]
    assert ranks == [{1, 2}, {1}]


def test_every_peer_is_in_the_table_or_among_the_missing_with_how_to_get_it(record):
    wanted = {(e.peer, e.precond) for e in catalog.ENTRIES}
    assert {(r.peer, r.precond) for r in record[0].runs} == wanted
    for r in record[0].runs:
        assert r.status != "missing" or "install" in r.note or "no GPU" in r.note
        assert r.peer in record[2]


def test_the_report_shows_peers(record, output, unrendered):
    folder = record[1]
    output("report", str(folder))
    page = (folder / "report" / "index.html").read_text()
    assert "Peers on m1: 630 equations, one system" in page
    rows = (folder / "report" / "tables" / "peers.csv").read_text().splitlines()
    assert len(rows) == 1 + sum(r.status == "timed" for r in record[0].runs)
    assert (folder / "report" / "tables" / "peers_base.csv").exists()


def test_the_exported_system_is_the_one_that_u_solves(record):
    folder = record[1] / "exported"
    K, f, u = (petsc_file(folder / f"{name}.petsc") for name in "Kfu")
    assert np.linalg.norm(f - K @ u) <= 1e-11 * np.linalg.norm(f)
    from scipy.sparse import csr_matrix

    npz = np.load(folder / "system.npz")
    same = csr_matrix((npz["data"], npz["indices"], npz["indptr"]), shape=K.shape)
    assert abs(same - K).max() == 0
    assert np.array_equal(npz["f"], f)
    assert np.array_equal(npz["u"], u)
    assert npz["x"].shape == npz["restrained"].shape
    assert record[0].system.nonzeros == K.nnz


def test_petsc_reads_the_exported_files(record):
    pytest.importorskip("petsc4py")
    folder = record[1] / "exported"
    script = """
import sys, numpy as np
from fembench.solve.petsc import library
PETSc = library()
K = PETSc.Mat().load(PETSc.Viewer().createBinary(sys.argv[1] + "/K.petsc", "r"))
f, u = (PETSc.Vec().load(PETSc.Viewer().createBinary(f"{sys.argv[1]}/{n}.petsc", "r")) for n in "fu")
r = f.duplicate()
K.mult(u, r)
r.axpy(-1.0, f)
print(r.norm() / f.norm())
"""
    import subprocess

    done = subprocess.run([sys.executable, "-c", script, folder], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) <= 1e-11


@pytest.mark.parametrize("mesh", ["m1", "box:4x3x4:hex8"])
def test_the_exported_matrix_is_symmetric_and_that_of_the_elements(mesh):
    system = system_of(mesh)
    from fembench.fem.residual import internal_force

    K, sub, material = system.K, system.prepared.sub, system.prepared.spec.material
    assert abs(K - K.T).max() <= 1e-15 * abs(K).max()
    v = np.zeros((sub.n_nodes, 3))
    v[: sub.n_active] = np.random.default_rng(1).standard_normal((sub.n_active, 3))
    force = internal_force(sub.x, sub.cells, sub.element, material.lam, material.mu, v)[: sub.n_active]
    difference = K @ v[: sub.n_active].reshape(-1) - force.reshape(-1)
    assert np.linalg.norm(difference) <= 1e-13 * np.linalg.norm(force)


@pytest.mark.parametrize("mesh", ["m1", "box:4x3x4:hex8"])
@pytest.mark.parametrize("problem", ["corner-load", "bar"])
def test_scikit_fem_assembles_the_same_matrix(mesh, problem):
    pytest.importorskip("skfem")
    from fembench.peers.solvers import skfem_stiffness

    system = system_of(mesh, problem)
    assert abs(skfem_stiffness(system) - system.K).max() <= 1e-12 * abs(system.K).max()


def test_a_textbook_finds_the_solution_of_a_small_system():
    A = np.array([[4.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 2.0]])
    f = np.array([1.0, 2.0, 3.0])
    control = StoppingCriterion(tolerance=1e-12, relative=True)
    for inverse in (None, 1 / np.diag(A)):
        x, iterations = conjugate_gradients(A, f, inverse, control)
        assert x == pytest.approx(np.linalg.solve(A, f), rel=1e-11)
        assert iterations <= 3
    assert conjugate_gradients(A, f, None, StoppingCriterion(fixed=2))[1] == 2


def contest(**fields):
    return Contest(
        catalog.ENTRIES[0], 1, library="x", solves=[1.0], per_iteration=[0.1], setup=[9.0, 1.0], **fields
    )


def test_a_peer_with_another_solution_gets_no_time():
    run = contest(difference=2 * PARITY, iterations=10).result()
    assert run.status == "no parity"
    assert run.solves == run.per_iteration == run.setup == run.assembly == ()
    assert "2.0e-06" in run.note
    for difference in (float("nan"), None):  # without a finite solution
        one = contest(difference=difference)
        assert (one.agrees, one.result().solves) == (False, ())
    run = contest(difference=0.0, failed="it broke").result()
    assert (run.status, run.note, run.solves) == ("failed", "it broke", ())
    assert contest(difference=0.0).result().setup == (1.0,)  # the first building does not count


def staged(entry, peer):
    """The stage of one rank and a system of six rows, and a contest of this peer on it."""
    from fembench.peers.contest import Stage
    from fembench.ranks.comm import alone

    job = PeersJob(case=Case.of(mesh="m1"), names=(), repetitions=1)
    return Stage(alone(), job, None, None, SimpleNamespace(u=np.ones(6))), Contest(entry, 1, peer=peer)


class Peer:
    """One that returns this, or raises it."""

    library, assembly, setup = "x", None, 0.0

    def __init__(self, outcome):
        self.outcome = outcome

    def solve(self, control):
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return Sample(1.0, 1, self.outcome)


def test_a_peer_that_fails_or_returns_nonsense_ends_its_part_alone_and_our_own_errors_end_all():
    petsc = next(e for e in catalog.ENTRIES if e.peer.startswith("petsc"))
    stage, one = staged(petsc, Peer(RuntimeError("zero pivot")))
    check(stage, one)
    assert (one.failed, one.agrees) == ("RuntimeError: zero pivot", False)
    stage, one = staged(petsc, Peer(np.ones(7)))
    check(stage, one)
    assert (one.failed, one.agrees, one.result().status) == ("", False, "no parity")
    stage, one = staged(catalog.ENTRIES[0], Peer(RuntimeError("a bug")))
    with pytest.raises(RuntimeError, match="a bug"):
        check(stage, one)


def run_of(peer, ranks, solve, setup=0.0, status="timed"):
    times = {"solves": (solve,), "setup": (setup,)} if status == "timed" else {}
    return PeerRun(peer=peer, precond="none", ranks=ranks, status=status, **times)


@pytest.mark.row("004:4b")
def test_the_base_of_the_speedup_is_the_best_serial_peer_and_not_ourselves(record):
    runs = (
        run_of("own-sym", 1, 1.0),
        run_of("quick-solve", 1, 2.0, setup=5.0),
        run_of("quick-all", 1, 4.0, setup=1.0),
        run_of("many-ranks", 2, 0.1),
        run_of("wrong", 1, 0.1, status="no parity"),
    )
    changed = msgspec.structs.replace(record[0], runs=runs)
    assert best_serial(changed).peer == "quick-all"
    base = next(t for t in peers_tables(changed) if t.name == "peers_base")
    assert base.rows[0][:5] == (1, "own-sym none", 1.0, 1.0, 5.0)
    assert base.rows[0][5:] == ("quick-all none", 5.0)


def test_what_is_missing_is_one_row_and_a_disturbance_comes_first(record):
    ran, *_ = (r for r in record[0].runs if r.status == "timed")
    absent = [
        msgspec.structs.replace(
            ran, peer=peer, precond=precond, status="missing", note=f"no {why}: install it"
        )
        for peer, precond, why in (("a", "none", "x"), ("a", "jacobi", "x"), ("b", "none", "y"))
    ]
    wrong = msgspec.structs.replace(ran, status="no parity", note="another solution")
    changed = msgspec.structs.replace(record[0], runs=(ran, *absent, wrong))
    first, *_, missing = peers_tables(changed)
    assert missing.rows == (
        (ran.peer, ran.precond, "no parity", "another solution"),
        ("a, b", None, "missing", "no x: install it; no y: install it"),
    )
    assert all(host.others_percent >= 0 for host in changed.environment.hosts)
    for percent, begin in (
        (40.0, "DISTURBED: others used up to 40 % of the CPU time on "),
        (0.0, "Medians; "),
    ):
        hosts = [
            msgspec.structs.replace(host, others_percent=percent, others_resolution=0.1)
            for host in changed.environment.hosts
        ]
        environment = msgspec.structs.replace(changed.environment, hosts=tuple(hosts))
        loud = msgspec.structs.replace(changed, environment=environment)
        first, *_ = peers_tables(loud)
        assert first.note.startswith(begin)
        said = conclusions_of(CampaignResults("", [], [], {}, "", loud))
        assert [line.partition(":")[0] for line in said] == ["DISTURBED"] * (percent > 0)


def test_words_choose_peers_by_their_beginning():
    assert {e.peer for e in catalog.chosen(["own"], [])} == {
        *("own-sym", "own-bsr", "own-csr", "own-gpu", "own-opencl")
    }
    assert {e.name for e in catalog.chosen(["own-sym", "scipy"], ["jacobi"])} == {
        "own-sym jacobi",
        "scipy jacobi",
    }
    assert catalog.chosen([], []) == catalog.ENTRIES


@pytest.mark.parametrize(
    ("only", "preconds", "word"),
    [(["ovn"], [], "own-sym"), ([], ["jakobi"], "jacobi"), (["scipy"], ["gamg"], "gamg")],
)
def test_unknown_words_are_refused(only, preconds, word):
    with pytest.raises(InputError, match=word):
        catalog.chosen(only, preconds)


def test_a_missing_package_is_named_with_how_to_get_it(monkeypatch):
    monkeypatch.setattr(catalog.importlib.util, "find_spec", lambda name: None)
    entry = next(e for e in catalog.ENTRIES if e.peer == "scikit-fem")
    assert "skfem, pyamg" in catalog.missing(entry)
    assert "pip install scikit-fem pyamg" in catalog.missing(entry)


@pytest.mark.parametrize(
    ("peer", "packages"),
    [
        ("own-opencl", "pyopencl"),
        ("own-gpu", "cupy-cuda13x (NVIDIA; cupy-cuda12x for CUDA 12) or pyopencl (other devices)"),
    ],
)
def test_a_missing_library_of_a_device_is_named_with_what_installs_it_for_this_python(
    monkeypatch, peer, packages
):
    monkeypatch.setattr("fembench.device.find.find_spec", lambda name: None)
    entry = next(e for e in catalog.ENTRIES if e.peer == peer)
    how = f"{sys.executable} -m pip install {packages}"
    assert catalog.missing(entry) == f"no library for it is installed: {how}"


def test_a_zero_load_is_refused_in_one_line(tmp_path):
    problem = tmp_path / "idle.toml"
    problem.write_text('[[constraints]]\non = {plane = "x=0"}\n')
    done = cli("peers", "m1", "--problem", problem, "--only", "own", "--results", tmp_path)
    assert done.returncode == 2
    (line,) = [line for line in done.stderr.splitlines() if not line.startswith("peers: ")]  # progress
    assert "the load is zero" in line


def test_the_iterate_may_stand_for_the_solution(tmp_path, answer):
    pytest.importorskip("scipy")
    words = "peers m1 --ranks 2 --only own-sym own-bsr --precond none jacobi --iterations 20 --parity iterate"
    runs = answer(*words.split(), "--repetitions", "2", "--results", str(tmp_path))["runs"]
    assert len(runs) == 8
    for run in runs:
        assert (run["status"], run["iterations"], run["solves"]) == ("timed", 20, [])
        assert run["difference"] < 1e-12
    assert "last iterate" in peers_tables(load_peers(tmp_path / "peers.json"))[0].note


@pytest.mark.parametrize("words", ["--parity iterate", "--parity iterate --iterations 5", "--only ovn"])
def test_bad_options_are_refused_in_one_line(words, tmp_path, refusal):
    refusal("peers", "m1", *words.split(), "--results", str(tmp_path))


def test_a_job_that_cannot_start_leaves_no_empty_folder(tmp_path, refusal):
    hosts, results = str(tmp_path / "none"), str(tmp_path / "peers")
    assert "no such host file" in refusal("peers", "m1", "--hostfile", hosts, "--results", results)
    assert list(tmp_path.iterdir()) == []


def test_fixed_work_times_iterations_and_solves_once(tmp_path, answer):
    pytest.importorskip("scipy")
    words = "peers m1 --only own-sym scipy --precond jacobi --iterations 20 --repetitions 4 --results"
    for run in answer(*words.split(), str(tmp_path))["runs"]:
        assert len(run["solves"]) == 1
        assert len(run["per_iteration"]) == 4
        assert run["iterations"] > 100


@pytest.mark.parametrize(
    ("kind", "error"),
    [("revoked", AllocationLostError), ("crashed", RunFailedError), ("input", InputError)],
)
def test_a_comparison_without_a_result_raises_what_any_job_raises(monkeypatch, kind, error):
    end = run_job.JobEnd(None, kind, "the reason", 1, "printed")
    monkeypatch.setattr(run_job, "run_job", lambda *_, **__: end)
    job = PeersJob(case=Case.of(mesh="m1"), names=(), repetitions=1)
    with pytest.raises(error) as caught:
        run_job.measure("fembench.peers.peers_rank", job, PeersRecord, job_line(1), solver="petsc")
    assert str(caught.value) == "the reason"
    assert getattr(caught.value, "output", "") == ("printed" if kind == "crashed" else "")


def test_a_device_solves_the_same_system_on_one_rank_and_on_two(tmp_path):
    pytest.importorskip("pyopencl")
    only = ("--only", "own-opencl", "own-sym", "--precond", "none", "block-jacobi")
    done = cli("peers", "m1", "--ranks", 2, "--repetitions", 2, *only, "--results", tmp_path, timeout=160)
    assert done.returncode == 0, done.stdout + done.stderr
    runs = load_peers(tmp_path / "peers.json").runs
    assert {(r.peer, r.ranks, r.status) for r in runs} == {
        (peer, ranks, "timed") for peer in ("own-opencl", "own-sym") for ranks in (1, 2)
    }
    for precond in ("none", "block-jacobi"):
        counts = [r.iterations for r in runs if r.precond == precond]
        assert max(counts) - min(counts) <= 2
    assert all(r.library != "fembench, compiled kernels" for r in runs if r.peer == "own-opencl")


@pytest.fixture
def planted_cupy(monkeypatch):
    """CuPy whose arrays are those of numpy, with `get`; it waits when it is told to: [count]."""
    sparse = pytest.importorskip("scipy.sparse")
    from scipy.sparse import linalg

    class Array(np.ndarray):
        def get(self):
            return np.asarray(self)

    waits = []
    stream = SimpleNamespace(synchronize=lambda: waits.append(1))
    plain = {"asarray": lambda a: np.asarray(a).view(Array), "__version__": "14.0.0"}

    def cg(A, b, *, rtol, **how):
        x, code = linalg.cg(A, np.asarray(b), rtol=rtol, **how)
        return x.view(Array), code

    device = SimpleNamespace(get_current_stream=lambda: stream, runtime=None)
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(**plain, cuda=device))
    monkeypatch.setitem(sys.modules, "cupy.cuda", device)
    monkeypatch.delitem(sys.modules, "fembench.device.cuda", raising=False)
    monkeypatch.setitem(sys.modules, "cupyx.scipy.sparse", sparse)
    its = SimpleNamespace(LinearOperator=linalg.LinearOperator, cg=cg)
    monkeypatch.setitem(sys.modules, "cupyx.scipy.sparse.linalg", its)
    return waits


@pytest.mark.parametrize("precond", ["none", "jacobi"])
def test_cupyx_iterates_as_scipy_does_and_its_time_ends_when_the_device_has(planted_cupy, precond):
    system = system_of("m1")
    control = StoppingCriterion(tolerance=1e-8, relative=True, max_iterations=1000)
    there, here = (make_serial(Entry(peer, precond), system) for peer in ("cupyx", "scipy"))
    planted_cupy.clear()
    found, expected = there.solve(control), here.solve(control)
    assert planted_cupy == [1], "it has waited once"
    assert (there.library, found.iterations) == ("CuPy 14.0.0", expected.iterations)
    assert np.linalg.norm(found.x - system.u) <= PARITY * np.linalg.norm(system.u)


def test_petsc_without_cuda_and_a_host_without_a_gpu_are_named(monkeypatch):
    entry = next(e for e in catalog.ENTRIES if e.peer == f"petsc-{catalog.CUSPARSE}")
    monkeypatch.setattr(catalog.importlib.util, "find_spec", lambda name: name)
    monkeypatch.setattr(catalog, "lack", lambda kind: f"no device: {kind}")
    assert catalog.missing(entry) == "no device: gpu"
    monkeypatch.setattr(catalog, "lack", lambda kind: "")
    monkeypatch.setattr(petsc, "has_cuda", lambda: False)
    assert "--with-cuda" in catalog.missing(entry)
    monkeypatch.setattr(petsc, "has_cuda", lambda: True)
    assert catalog.missing(entry) == ""


def test_petsc_keeps_its_matrix_in_the_type_of_the_peer(monkeypatch):
    pytest.importorskip("petsc4py")
    monkeypatch.setattr(solvers, "CUSPARSE", "seqaijperm")  # as it would be on a GPU, with another type
    system = system_of("m1")
    peer = make_parallel(Entry("petsc-seqaijperm", "jacobi", parallel=True), system.prepared)
    assert peer._solver.A.getType() == "seqaijperm"
    control = StoppingCriterion(tolerance=1e-9, relative=True, max_iterations=1000)
    assert np.linalg.norm(peer.solve(control).x - system.u) <= PARITY * np.linalg.norm(system.u)
    assert petsc.has_cuda() is False  # it is compiled for cores
