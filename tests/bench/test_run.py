"""`fembench run` as a user types it: the record it leaves, what it prints, its exit status."""

from collections import Counter

import numpy as np
import pytest
from mpi_job import cli, measured

from fembench.base.errors import InputError
from fembench.bench.case_run import use_threads
from fembench.host.host import usable_cores
from fembench.host.machine_state import TRIADS
from fembench.kernels.backend import kernels
from fembench.records.phases import SPMV_INTERIOR
from fembench.records.store import load, record_paths
from fembench.records.times import Times

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def campaign(tmp_path_factory):
    """A folder with m2 on one, two and three ranks."""
    folder = tmp_path_factory.mktemp("campaign")
    file = folder / "three.toml"
    file.write_text('name = "three"\n[[cases]]\nmesh = "m2"\nranks = [1, 2, 3]\nsets = 5\nfields = true\n')
    done = cli("sweep", file, "--results", folder / "out")
    assert measured(done), done.stderr
    return folder / "out", done


@pytest.fixture(scope="module")
def records(campaign):
    return {r.case.placement.ranks: r for r in map(load, record_paths(campaign[0]))}


@pytest.mark.row("004:F8", "004:3.2")
def test_phases_and_the_unattributed_rest_make_up_the_total(records):
    shares = []
    for record in records.values():
        shares += Times(record).unattributed_share.tolist()
        top = [i for i, name in enumerate(record.phases) if not name.startswith("cg.")]
        spent = np.array([np.asarray(one.seconds)[:, top].sum(axis=1) for one in record.sets])
        total = np.array([one.total for one in record.sets])
        assert (spent <= total).all()
        # the best set: another process may take the core between two spans of one
        assert ((spent / total).max(axis=0) >= 0.99).all()
        parts = [i for i, name in enumerate(record.phases) if name.startswith("cg.")]
        for seconds in (np.asarray(one.seconds) for one in record.sets):
            assert (seconds[:, parts].sum(axis=1) <= seconds[:, record.phases.index("cg")]).all()
    assert 0 <= min(shares) <= 0.01  # what a busy machine adds is not the same everywhere
    assert np.median(shares) <= 0.05  # rule B2 is for all of them: on such a machine a run is INVALID by it


def test_an_emulated_run_learns_first_as_a_warm_up(tmp_path):
    options = ("--emulate", "1,0.5", "--dilate", "4", "--sets", "2", "--warmups", "1", "--iterations", "200")
    traced = ("--trace-iterations", "3")
    done = cli("run", "m2", "--ranks", "2", *options, *traced, "--results", tmp_path)
    assert measured(done), done.stderr
    (record,) = map(load, record_paths(tmp_path))
    assert [one.warmup for one in record.sets] == [True, True, False, False]
    assembled = np.array([np.asarray(s.seconds)[:, record.phases.index("assembly")] for s in record.sets])
    assert (assembled[0] > assembled[1]).all()  # many sets, none of them stretched
    assert Times(record).unattributed_share.min() <= 0.05
    products = Counter((e.rank, e.iteration) for e in record.events if e.phase == SPMV_INTERIOR)
    assert products == {(rank, k): 1 for rank in range(2) for k in range(3)}  # of one set, that is stretched


@pytest.mark.row("004:B6")
def test_the_trace_counts_two_allreduces_one_update_and_the_directed_neighbour_pairs(records):
    for record in records.values():
        pairs = sum(len(n) for n in record.partition.neighbours)
        assert (record.solve.allreduces, record.solve.updates, record.solve.messages) == (2, 1, pairs)


def test_other_ranks_are_held_against_one_rank(records):
    assert records[1].reference.source.startswith("shipped")
    if records[1].verdict.status != "INVALID":  # as on a machine too busy
        assert all(records[p].reference.source == records[1].id for p in (2, 3))
    for record in records.values():
        assert {rule.id for rule in record.verdict.rules if rule.ok} >= {"A1", "A2", "A3", "A4", "A5"}


@pytest.mark.parametrize("work", [("--iterations", "20", "--sets", "20"), ("--precond", "jacobi", "--quick")])
def test_a_run_without_any_reference_makes_its_own_with_another_storage(tmp_path, work):
    done = cli("run", "box:6x5x6", "--ranks", "2", *work, "--results", tmp_path, cwd=tmp_path)
    assert measured(done), done.stderr
    (record,) = map(load, record_paths(tmp_path))
    assert record.reference.source == "storage ebe, in the same run"
    a4 = [rule for rule in record.verdict.rules if rule.id == "A4"]
    assert [rule.ok for rule in a4] == [True] * 3
    assert Times(record).unattributed_share.min() <= 0.05


@pytest.mark.row("004:F10")
def test_the_first_iterations_of_every_rank_are_in_the_trace(records):
    for record in records.values():
        seen = {(e.rank, e.iteration) for e in record.events}
        assert {(rank, k) for rank in range(record.case.placement.ranks) for k in range(3)} <= seen
        assert all(e.begin <= e.end for e in record.events)


def test_memory_clock_provenance_and_the_state_of_the_machine_are_known(records):
    for ranks, record in records.items():
        assert [len(row) for row in record.solve.triads] == [2 * TRIADS] * ranks  # before and after the sets
        assert min(map(min, record.solve.triads)) > 1e8
        assert [(r.what, r.ranks) for r in record.solve.state] == [("core", 1), ("memory", 1)]
        assert min(r.speed for r in record.solve.state) > 1e8
        assert min(record.peak_memory) > 10 << 20
        assert record.clock.certified
        assert record.clock.span_ns < 3000
        assert record.environment.hosts[0].cpu_model
        assert record.environment.command.startswith("fembench sweep")
        assert record.environment.hosts_asked == ""  # no host file


def test_the_report_is_one_page_with_pictures_and_exports(campaign):
    folder, done = campaign
    page = (folder / "report" / "index.html").read_text()
    assert page.count("<svg") >= 5
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert list((folder / "report" / "exports").glob("*.vtu"))
    assert f"\nreport: {folder}" in done.stdout


@pytest.mark.skipif(not kernels.HAS_THREADS or usable_cores() < 2, reason="threads and two cores are needed")
def test_a_run_with_two_threads_finds_the_bits_of_one_and_records_what_each_thread_computed(tmp_path):
    options = ("--iterations", "30", "--sets", "3", "--warmups", "1", "--results", tmp_path)
    done = [cli("run", "box:20x15x20", "--threads", n, *options) for n in ("1", "2")]
    assert all(map(measured, done)), done[1].stderr
    one, two = sorted(map(load, record_paths(tmp_path)), key=lambda r: r.case.placement.threads)
    assert one.solve.residuals == two.solve.residuals
    assert one.verification == two.verification
    assert (one.environment.threads, one.solve.thread_seconds) == (1, ())
    assert two.environment.threads == 2
    ((first, second),) = two.solve.thread_seconds
    assert min(first, second) > 0
    assert len(two.environment.cores[0]) >= 2


def test_kernels_without_openmp_refuse_a_second_thread(monkeypatch):
    monkeypatch.setattr(kernels, "HAS_THREADS", False)
    with pytest.raises(InputError, match="threads = 2: the kernels were compiled without OpenMP"):
        use_threads(2)


def test_more_threads_than_cores_are_refused_in_a_line(tmp_path):
    done = cli("run", "m1", "--threads", "1000", "--results", tmp_path)
    assert done.returncode == 2
    assert "--threads 1000: no host has so many cores for a rank" in done.stderr
    assert not list(record_paths(tmp_path))
