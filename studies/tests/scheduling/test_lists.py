"""Gate A9 of thesis-001, and HEFT against a reference."""

from statistics import geometric_mean, median

import pytest
from zoo import cases, free_messages, platform, random_graph, small_platform

from fembench.base.errors import InputError
from fembench_studies.scheduling.execute import makespan
from fembench_studies.scheduling.methods import (
    METHODS,
    hlogp_heft,
    latency_heft,
    round_robin,
    upward_ranks,
)
from fembench_studies.scheduling.task_graph import TaskGraph, fork, join, ring


def executed(graph, hosts, schedule):
    return makespan(graph, hosts, schedule.order, schedule.host)


@pytest.fixture(scope="module")
def gate():
    """For each case (error of HLogP, error of the latency model, latency / HLogP, round robin / HLogP)."""
    rows = []
    for graph, hosts in cases():
        h, lat, rr = hlogp_heft(graph, hosts), latency_heft(graph, hosts), round_robin(graph, hosts)
        xh, xl, xr = (executed(graph, hosts, s) for s in (h, lat, rr))
        rows.append((abs(h.expected - xh) / xh, abs(lat.expected - xl) / xl, xl / xh, xr / xh))
    return rows


@pytest.mark.row("001:3.11a", "001:A9")
def test_hlogp_predicts_its_makespan(gate):
    errors = [row[0] for row in gate]
    assert len(errors) == 30
    assert median(errors) <= 0.02
    assert max(errors) <= 0.11


@pytest.mark.row("001:A9")
def test_the_latency_model_errs_more_in_every_case(gate):
    assert all(row[1] > row[0] for row in gate)


@pytest.mark.row("001:A9")
def test_schedules_by_hlogp_end_earlier(gate):
    assert geometric_mean(row[2] for row in gate) >= 1.05
    assert geometric_mean(row[3] for row in gate) >= 1.15


def test_fork_and_join_add_up_overheads():
    """thesis-001, 6.1: the last of nine is delayed by eight overheads and its own message."""
    hosts = platform("10 unequal")
    place = (0, 1, 2, 3, 4, 5, 6, 7, 8, 0)
    out = fork(10, 0.0)
    # the ninth message is the local one: eight send overheads, then a local message
    last = makespan(TaskGraph("last", out.work, out.edges), hosts, tuple(range(10)), place)
    assert last == pytest.approx(8 * 0.351304 + 2 * 0.010974)
    into = makespan(join(10, 0.0), hosts, tuple(range(10)), (1, 2, 3, 4, 5, 6, 7, 8, 0, 0))
    # it begins once its host has sent the local message
    assert into == pytest.approx(8 * 0.357019 + 2 * 0.010974)


def test_a_ring_is_the_sum_of_its_parts():
    hosts = platform("4 equal")
    total = makespan(ring(3, 5.0), hosts, (0, 1, 2, 3), (0, 1, 2, 0))
    assert total == pytest.approx(3 * (5 + 0.351304 - 0.350929 + 0.357019))


def reference_heft(graph, hosts):
    """HEFT without insertion as in Topcuoglu et al., written independently."""
    rank = upward_ranks(graph, hosts)
    host, end = {}, {}
    for t in sorted(range(graph.n_tasks), key=lambda t: (-rank[t], t)):
        options = []
        for p in range(hosts.n_hosts):
            inputs = [
                end[q] + (0 if host[q] == p else hosts.message(size, host[q], p).total)
                for q, size in graph.predecessors[t]
            ]
            begin = max([*inputs, *(end[q] for q in end if host[q] == p)], default=0.0)
            options.append((begin + graph.work[t] * hosts.slowness[p], p))
        end[t], host[t] = min(options)
    return max(end.values())


@pytest.mark.row("001:3.11b")
@pytest.mark.parametrize("seed", range(50))
def test_heft_is_the_reference(seed):
    graph, hosts = random_graph(20, seed, ratio=0.5), small_platform(seed, 4)
    found = latency_heft(graph, hosts)
    assert found.expected == pytest.approx(reference_heft(graph, hosts), rel=1e-12)


def test_hosts_without_messages_share_the_work():
    graph = TaskGraph("independent", (1.0,) * 6, ())
    for name, method in METHODS.items():
        found = method(graph, free_messages((1.0, 1.0, 1.0)))
        assert found.expected == pytest.approx(6.0 if name == "fastest" else 2.0), name


def test_an_edge_backwards_is_refused():
    with pytest.raises(InputError, match="edge 1 to 0"):
        TaskGraph("wrong", (1.0, 1.0), ((1, 0, 8.0),))
