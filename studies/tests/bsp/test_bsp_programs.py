"""Shear-Sort and fractal compression over migrating blocks: the right answer, whichever blocks move."""

import time

import numpy as np
import pytest

from fembench.balance.control import Settings
from fembench.balance.observation import Tuning
from fembench.synthetic.slowness import FullSpeed, slowness_of
from fembench_studies.bsp.fractal import Fractal, domains_of, match, oriented, picture, ranges_of
from fembench_studies.bsp.shear_sort import ShearSort, transposition_sort
from fembench_studies.bsp.supersteps import ArrayBlocks, learn, run_program

mpi = pytest.mark.mpi


def snake(matrix):
    """The numbers along the snake: even rows forwards, odd rows backwards."""
    rows = matrix.copy()
    rows[1::2] = rows[1::2, ::-1]
    return rows.ravel()


def restless(policy="random"):
    """Moves blocks at every second superstep."""
    return Settings(policy=policy, alpha=1, gamma=2, tuning=Tuning(band=0.001))


@pytest.mark.row("002:F20/21")
@mpi
@pytest.mark.parametrize("supersteps", [0, 33])
@pytest.mark.parametrize("policy", ["none", "random"])
def test_shear_sort_sorts_along_the_snake_wherever_its_blocks_are(comm, supersteps, policy):
    program = ShearSort(24, 12, supersteps)
    ran = run_program(comm, program, restless(policy))
    if comm.rank == 0:
        assert np.array_equal(snake(ran.result), np.sort(program._matrix.ravel()))
        assert bool([m for look in ran.ledger.looks for m in look.moves]) == (
            policy == "random" and comm.size > 1
        )


@pytest.mark.row("002:F20/21")
@mpi
@pytest.mark.parametrize("policy", ["none", "random"])
def test_every_range_finds_its_best_domain_wherever_the_blocks_are(comm, policy):
    image = picture(40, 56)
    ran = run_program(comm, Fractal(40, 56, 8, 8), restless(policy))
    if comm.rank == 0:
        ranges, domains = ranges_of(image, 8), oriented(domains_of(image, 8), 8)
        best = np.full((len(ranges), 4), np.inf)
        match(ranges, domains, best, 0)
        assert np.array_equal(ran.result[:, 1], best[:, 1])
        assert np.allclose(ran.result, best, rtol=1e-9)


@pytest.mark.mpi(2, 3, 4)
def test_a_slow_rank_loses_blocks(comm):
    settings = Settings(policy="amortised", alpha=1, gamma=2)
    speeds = (1 / 30, *[1.0] * (comm.size - 1))  # far apart, so that noise does not matter
    slowness = slowness_of(comm.rank, speeds, 2.0, crowded=True)
    ran = run_program(comm, ShearSort(48, 4 * comm.size, 16), settings, slowness)
    if comm.rank == 0:
        assert ran.ledger.owner.count(0) < 4
        assert ran.ledger.looks[-1].iteration < 16  # no observation after the end,
        assert ran.ledger.looks[-1].measured > 0  # but the effect of the last one is measured
        assert np.array_equal(np.sort(ran.result.ravel()), snake(ran.result))


@mpi
def test_the_balancer_goes_by_the_elapsed_time_of_blocks_and_not_by_the_speed_that_is_set(comm):
    class Waits(FullSpeed):
        """Claims full speed, and waits."""

        def end(self, phase=0):
            time.sleep(5e-3)

    blocks = ArrayBlocks(comm, ShearSort(12, comm.size, 2), Waits())
    blocks.begin()
    blocks.open(0)
    blocks.superstep(0)
    ids, seconds, *_ = blocks.measured(1)
    assert len(ids) == 1
    assert 5e-3 <= seconds[0] < 5


@mpi
@pytest.mark.parametrize("program", [lambda: ShearSort(48, 12, 4), lambda: Fractal(40, 56, 8, 12)])
def test_blocks_last_as_long_as_was_learned_wherever_they_are(comm, program):
    slowness = slowness_of(comm.rank, [1.0 / (1 + rank) for rank in range(comm.size)], 40.0, crowded=True)
    learn(comm, program(), slowness)
    (least,) = slowness.learned.values()
    assert comm.allgather(least) == [least] * comm.size
    blocks = ArrayBlocks(comm, program(), slowness)
    blocks.open(0)
    blocks.superstep(0)
    expected = [slowness.factor * least * program().amount(arrays) for arrays in blocks.blocks.values()]
    # what is late is made up for in the next; without the emulation, it would be a fortieth
    assert sum(blocks.measured(1).seconds) >= 0.7 * sum(expected)


def test_transposition_sorts_every_row():
    rows = np.random.default_rng(0).random((5, 17))
    wanted = np.sort(rows, axis=1)
    transposition_sort(rows)
    assert np.array_equal(rows, wanted)


def test_the_fit_of_a_range_is_that_of_least_squares():
    rng = np.random.default_rng(1)
    r, d = rng.random((1, 16)), rng.random((1, 16))
    best = np.full((1, 4), np.inf)
    match(r, d, best, 7)
    s, o = np.polyfit(d[0], r[0], 1)
    assert best[0] == pytest.approx([np.mean((s * d + o - r) ** 2), 7, s, o])


def test_counts_of_ranges_and_domains_are_those_of_the_thesis():
    for r, domains, ranges in ((32, 1888, 1980), (16, 7854, 8040)):
        image = np.zeros((1080, 1920))
        assert len(domains_of(image, r)) == domains
        assert len(ranges_of(image, r)) == ranges


def test_eight_orientations_differ_and_keep_the_numbers():
    eight = oriented(np.arange(16.0)[None], 4)
    assert len({tuple(row) for row in eight}) == 8
    assert (np.sort(eight, axis=1) == np.arange(16.0)).all()
