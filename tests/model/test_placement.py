"""Placement of parts on hosts, and launchers' files."""

import random
from itertools import product

import pytest
from planted_machine import flat_class, planted_machine, planted_network
from planted_runs import run_of, study_of

from fembench.base.errors import InputError
from fembench.cli.parser import page
from fembench.cli.verbs import verb_parser
from fembench.model.placement import (
    CandidateHost,
    Parts,
    allreduce_seconds,
    best_placement,
    exchanged,
    iteration_seconds,
)
from fembench.records.case import Case
from fembench.records.hlogp import MessageCost
from fembench.workflows.command import LAUNCHER_FILES, mpich, rankfile, slurm
from fembench.workflows.place import iteration_on, measured

REMOTE = MessageCost(0.351304, -0.350929, 0.357019)  # LAM, 4 MiB between hosts
LOCAL = MessageCost(0.010974, 0.0, 0.010974)  # on one host

NEAR, FAR = MessageCost(1e-6, 1e-6, 1e-6), MessageCost(2e-5, 6e-5, 2e-5)


def message(size, source, target):
    base = NEAR if source == target else FAR
    per_byte = 1e-10 if source == target else 8e-9
    return MessageCost(base.send, base.latency + size * per_byte, base.receive)


def problem(seed):
    """Four to six parts of unequal size and messages, two or three hosts."""
    draw = random.Random(seed)
    n = draw.randint(4, 6)
    near = [{q for q in range(n) if q != r and (abs(q - r) == 1 or draw.random() < 0.3)} for r in range(n)]
    for r in range(n):
        for q in near[r]:
            near[q].add(r)
    size = {(min(r, q), max(r, q)): draw.randint(100, 200_000) for r in range(n) for q in near[r]}
    parts = Parts(
        tuple(draw.uniform(1e-3, 4e-3) for _ in range(n)),
        tuple(tuple(sorted(near[r])) for r in range(n)),
        tuple(tuple(size[min(r, q), max(r, q)] for q in sorted(near[r])) for r in range(n)),
    )
    n_hosts = draw.randint(2, 3)
    hosts = [
        CandidateHost(f"h{k}", 4, draw.randint(1, 3), draw.choice((1.0, 1.5, 3.0))) for k in range(n_hosts)
    ]
    return parts, hosts


def fitting(hosts, ranks):
    """Every placement that leaves no host with more ranks than slots."""
    every = product(range(len(hosts)), repeat=ranks)
    return [p for p in every if all(p.count(k) <= h.slots for k, h in enumerate(hosts))]


@pytest.mark.row("001:7.3.4")
@pytest.mark.parametrize("seed", range(10))
def test_within_three_per_cent_of_the_best_of_all_placements(seed):
    parts, hosts = problem(seed)
    cost = lambda place: iteration_seconds(parts, hosts, message, place)  # noqa: E731
    found = best_placement(parts, hosts, cost)
    assert found.seconds == cost(found.place)
    assert found.seconds <= 1.03 * min(map(cost, fitting(hosts, parts.n_ranks)))
    assert found.seconds <= min(seconds for _, seconds in found.starts)


@pytest.mark.parametrize("seed", range(5))
def test_within_three_per_cent_of_the_best_of_all_placements_simulated(seed):
    """Unequal parts of a small mesh, on a profile of two or three hosts of three ranks each."""
    draw = random.Random(seed)
    ranks, names = draw.randint(4, 5), "abc"[: draw.randint(2, 3)]
    speeds = [speed for _ in names for speed in [draw.choice((1.0, 0.7, 0.3))] * 3]
    far = flat_class("here", latency=draw.choice((2e-5, 1e-4)), a_byte=draw.choice((1e-7, 1e-8)))
    network = planted_network(len(names), far=far)
    profile = planted_machine(speeds, [name for name in names for _ in range(3)], network=network)
    shares = ":".join(str(1 + k % 3) for k in range(ranks))
    record, _ = run_of(study_of(profile), Case.of(mesh="m1", ranks=ranks, shares=shares))
    ground = measured(record, profile)
    cost = lambda p: iteration_on(ground.work, ground.prices(p), ground.machine(p))  # noqa: E731
    found = ground.best()
    assert found.seconds == cost(found.place)
    assert found.seconds <= 1.03 * min(map(cost, fitting(ground.hosts, ranks)))


def test_an_iteration_by_hand():
    parts = Parts((1.0, 2.0), ((1,), (0,)), ((8,), (8,)))
    hosts = [CandidateHost("a", 2, 1), CandidateHost("b", 2, 2, 1.5)]
    message = lambda s, a, b: LOCAL if a == b else REMOTE  # noqa: E731
    apart = REMOTE.total * 2
    assert iteration_seconds(parts, hosts, message, (0, 1)) == pytest.approx(
        3.0 + REMOTE.send + REMOTE.receive + apart
    )
    # both on the host of one core: each takes twice as long
    assert iteration_seconds(parts, hosts, message, (0, 0)) == pytest.approx(
        4.0 + LOCAL.send + LOCAL.receive + 2 * LOCAL.total
    )
    assert allreduce_seconds(message, (0,)) == 0


def test_exchange_leaves_slots_alone():
    _, hosts = problem(1)
    place = exchanged((0, 0, 0, 0), hosts, lambda p: -sum(k == 1 for k in p), 10_000)
    assert place == (1, 1, 1, 1)


def test_ranks_that_do_not_fit_are_refused():
    parts, _ = problem(2)
    with pytest.raises(InputError, match="expected at least as many slots"):
        best_placement(parts, [CandidateHost("a", 1, 1)], lambda p: 0.0)


HOSTS = [CandidateHost("fast", 4, 2), CandidateHost("slow", 2, 1)]


@pytest.mark.row("001:F13")
def test_files_of_launchers():
    assert rankfile((0, 1, 0), HOSTS) == "rank 0=fast slot=0\nrank 1=slow slot=0\nrank 2=fast slot=1\n"
    assert mpich((0, 0, 1, 0), HOSTS) == "fast:2\nslow:1\nfast:1\n"
    assert slurm((1, 0), HOSTS) == "slow\nfast\n"
    text = " ".join(page(verb_parser("place"), 100).split())
    assert all(f"{name}: {one.help}" in text for name, one in LAUNCHER_FILES.items())
