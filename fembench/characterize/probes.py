"""The probes of a rank's speed: fembench's own kernels, on local data of several sizes.

    assembly   the symmetric matrix of a box, from its cells        cells
    product    q = A d in each storage                              blocks (3x3, of the whole stiffness)
    updates    the two vector passes of a CG iteration; outside the
               second-level cache, each follows a product, as in a
               run, which leaves little of the vectors there        dofs
    triad      a = b + s c                                          bytes, as in `bandwidth`
    read       the sum of an array                                  bytes

The sizes are such that the symmetric matrix fits into the second-level cache,
into this rank's part of the third-level cache, or into neither. Products and
updates are also measured in between, from half of that part to twice it: where the
cache no longer holds all data, speed falls steeply. Other storages
use the same mesh, as in a run; dense uses a smaller one, whose matrix has as many
bytes as the symmetric matrix.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from fembench.base.arrays import F64
from fembench.bench.prepare import prepare
from fembench.host.machine_state import DOUBLE
from fembench.kernels.backend import kernels
from fembench.methods.lookup import names, storage_of, storages
from fembench.ranks.comm import alone
from fembench.ranks.subdomain import Subdomain
from fembench.records.case import Case
from fembench.records.phases import ASSEMBLY, AXPY, SPMV_INTERIOR
from fembench.records.profile import BETWEEN, Level
from fembench.solve.operators import build_operator
from fembench.timing.tracer import NullTracer

STORAGES = names(s for s in storages("own") if s.unit != "pairs")  # dense has another mesh
BLOCK_FLOPS = 18  # per product
NODE_BYTES = 620  # per node of a box, in the symmetric matrix
DENSE_BYTES = 72  # per pair of nodes, in a dense matrix
L2, L3 = 1 << 20, 16 << 20  # bytes, if the system does not report them
PART = 0.3  # of a cache that the symmetric matrix fills: csr needs 2.7 times its bytes
COPIES = 10.0  # bytes of all data of one size, over those of the symmetric matrix
LEAST, MOST = 1 << 18, 1 << 27  # bytes of the symmetric matrix
STEPS = tuple(2 ** (k / 2) for k in range(-2, 3))  # its bytes over a part of L3, where that becomes too small


@dataclass(frozen=True)
class Probe:
    """One measurement on this rank."""

    phase: str
    level: Level
    unit: str
    units: int  # per call
    n_bytes: int
    number: int  # of the corresponding phase in a run
    call: Callable[[], object]
    storage: str = ""
    cells: int = 0
    before: Callable[[], object] | None = None  # called before each `call`, not timed
    then: Callable[[], object] | None = None  # the second part of a call, also after a `before`


def level_bytes(
    caches: Mapping[str, int], sharers: int, ranks: int, memory: int
) -> dict[Level, tuple[int, ...]]:
    """Bytes of the matrices for each level, ascending; `sharers`
    ranks share an L3, `ranks` the memory."""
    second, third = caches.get("L2") or L2, caches.get("L3") or L3
    inner = max(PART * second, LEAST)
    middle = max(PART * third / max(sharers, 1), 3 * inner)
    outer = max(2.0 * third, 4 * middle)
    room = memory / (2 * COPIES * ranks) if memory else math.inf
    inner, middle, outer = (int(min(max(n, LEAST), MOST)) for n in (inner, middle, min(outer, room)))
    steps = (int(step * third / max(sharers, 1)) for step in STEPS)
    between = tuple(n for n in steps if middle < n < outer)
    return {"L2": (inner,), "L3": (middle,), BETWEEN: between, "memory": (outer,)}


def box_of(n_bytes: int) -> str:
    """The name of the box mesh whose symmetric matrix has about `n_bytes` bytes."""
    return f"box:{max(24, 3 * n_bytes // NODE_BYTES)}"


def dense_box_of(n_bytes: int) -> str:
    """The name of the box mesh whose dense matrix has about `n_bytes` bytes."""
    return f"box:{max(24, 3 * math.isqrt(n_bytes // DENSE_BYTES))}"


def local_part(mesh: str) -> tuple[Subdomain, float, float]:
    """(subdomain, lam, mu) of a box local to this rank."""
    made = prepare(alone(), Case.of(mesh=mesh, partitioner="blocks"), NullTracer())
    return made.sub, made.spec.material.lam, made.spec.material.mu


def assembly_probe(level: Level, sub: Subdomain, lam: float, mu: float) -> Probe:
    """Assembly of the symmetric matrix, the first step of a set."""
    return Probe(
        phase="assembly",
        level=level,
        unit="cells",
        units=sub.n_cells,
        cells=sub.n_cells,
        n_bytes=build_operator("sym", sub, lam, mu).matrix_bytes,
        number=ASSEMBLY,
        call=lambda: build_operator("sym", sub, lam, mu),
    )


class CGArrays(NamedTuple):
    """The vectors of CG, all of a length."""

    x: F64
    r: F64
    d: F64
    q: F64


def arrays_of(sub: Subdomain) -> CGArrays:
    """Vectors of a part: x = 0, the others 1."""
    found = CGArrays(*(kernels.zeros(3 * sub.n_active) for _ in range(4)))
    found.r[:] = found.d[:] = found.q[:] = 1.0
    return found


def product_probe(
    storage: str,
    level: Level,
    sub: Subdomain,
    lam: float,
    mu: float,
    arrays: CGArrays | None = None,
) -> Probe:
    """The product q = A d.

    Units: blocks of the whole stiffness; for dense, all stored blocks.
    """
    operator = build_operator(storage, sub, lam, mu)
    counted = operator if storage_of(storage).unit == "pairs" else build_operator("sym", sub, lam, mu)
    _, _, d, q = arrays or arrays_of(sub)
    product = operator.bind(d, q)
    interface, interior = product.interface, product.interior

    def call() -> None:
        interface()
        interior()

    return Probe(
        phase="product",
        storage=storage,
        level=level,
        unit="blocks",
        units=counted.flops // BLOCK_FLOPS,
        cells=sub.n_cells,
        n_bytes=operator.bytes_per_product,
        number=SPMV_INTERIOR,
        call=call,
    )


def updates_probe(
    level: Level,
    sub: Subdomain,
    arrays: CGArrays | None = None,
    before: Callable[[], object] | None = None,
) -> Probe:
    """Direction and step of an iteration, each after `before`, if there is one; the
    step is zero, so values stay finite."""
    x, r, d, q = arrays or arrays_of(sub)
    vectors = kernels.CGVectors(x, r, d, q, r, kernels.zeros(0))

    def direction() -> None:
        vectors.direction(0.5)

    def step() -> None:
        vectors.step(0.0)

    def both() -> None:
        direction()
        step()

    return Probe(
        phase="updates",
        level=level,
        unit="dofs",
        units=len(x),
        cells=sub.n_cells,
        n_bytes=9 * DOUBLE * len(x),
        number=AXPY,
        call=direction if before else both,
        before=before,
        then=step if before else None,
    )


def iteration_probes(level: Level, sub: Subdomain, lam: float, mu: float) -> list[Probe]:
    """Products in all storages and updates of the same vectors, in turn as in a run.

    In the second-level cache, calls are too short to be timed one by one: there, each is
    repeated. What updates leave in a cache matters to a product only where it is just
    too small for all.
    """
    arrays = arrays_of(sub)
    products = [product_probe(storage, level, sub, lam, mu, arrays) for storage in STORAGES]
    sym = products[STORAGES.index("sym")].call
    if level == BETWEEN:
        updates = updates_probe(level, sub, arrays).call
        products = [replace(product, before=updates) for product in products]
    return [*products, updates_probe(level, sub, arrays, None if level == "L2" else sym)]


def memory_probes(level: Level, n_bytes: int) -> Iterator[Probe]:
    """Triad and read of arrays with `n_bytes` bytes in total."""
    for phase, arrays in (("triad", 3), ("read", 1)):
        n = max(1, n_bytes // (arrays * DOUBLE))
        yield Probe(
            phase=phase,
            level=level,
            unit="bytes",
            units=arrays * DOUBLE * n,
            n_bytes=arrays * DOUBLE * n,
            number=AXPY,
            call=_triad(n) if phase == "triad" else kernels.Stream(n).read,
        )


def _triad(n: int) -> Callable[[], object]:
    run = kernels.Triad(n).run
    return lambda: run(0.5)
