"""A whole solve by several threads per rank: the same bits as by one, in every iterate and the solution."""

import pytest
from systems import System

from fembench.kernels.backend import kernels
from fembench.methods.lookup import names, preconds, recurrences, storages
from fembench.solve.iterate import StoppingCriterion

needs_threads = pytest.mark.skipif(not kernels.HAS_THREADS, reason="compiled without OpenMP")
THREADED = [("sym", name) for name in names(p for p in preconds("own") if p.threads)] + [
    (name, "none") for name in names(s for s in storages("own") if s.threads) if name not in ("sym", "dense")
]


@pytest.fixture(autouse=True)
def one_thread():
    yield
    kernels.use_threads(1)


def solved(comm, storage, precond, counts):
    """[number of threads] -> what a solve leaves, to the last bit."""
    found = []
    for threads in counts:
        kernels.use_threads(threads)
        system = System(comm, "box:20x15x20", storage, precond)
        result, spans = system.solve(control=StoppingCriterion(fixed=10))
        found.append((result.residuals, result.x.tobytes(), spans.tolist()))
    return found


@needs_threads
@pytest.mark.mpi(1)
@pytest.mark.parametrize(("storage", "precond"), THREADED)
def test_a_solve_has_the_same_bits_for_any_number_of_threads(comm, storage, precond):
    one, *others = solved(comm, storage, precond, (1, 2, 3, 4))
    assert others == [one] * 3


@needs_threads
@pytest.mark.mpi(2)
def test_a_solve_on_two_ranks_has_the_same_bits_with_two_threads_each(comm):
    one, two = solved(comm, "sym", "block-jacobi", (1, 2))
    assert two == one


def test_what_several_threads_share_is_declared():
    assert names(s for s in storages() if s.threads) == ("sym", "bsr", "csr", "dense")
    assert names(p for p in preconds() if p.threads) == ("none", "jacobi", "block-jacobi", "chebyshev")
    assert names(r for r in recurrences() if r.threads) == ("standard",)
