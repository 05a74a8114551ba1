"""The probes of a rank's speed: fembench's own kernels, on local data of three sizes.

    assembly   the symmetric matrix of a box, from its cells        cells
    product    q = A d in each storage                              blocks (3x3, of the whole stiffness)
    updates    the two vector passes of a CG iteration; in memory,
               each follows a product, which removes the vectors
               from the caches                                      dofs
    triad      a = b + s c                                          bytes, as in `bandwidth`
    read       the sum of an array                                  bytes

The sizes are such that the symmetric matrix fits into the second-level cache,
into this rank's part of the third-level cache, or into neither. Other storages
use the same mesh, as in a run; dense uses a smaller one, whose matrix has as many
bytes as the symmetric matrix.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from fembench.bench.prepare import prepare
from fembench.host.machine_state import DOUBLE
from fembench.kernels.backend import kernels
from fembench.methods.lookup import names, storage_of, storages
from fembench.ranks.comm import alone
from fembench.ranks.subdomain import Subdomain
from fembench.records.case import Case
from fembench.records.phases import ASSEMBLY, AXPY, SPMV_INTERIOR
from fembench.records.profile import Level
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


def level_bytes(caches: Mapping[str, int], sharers: int, ranks: int, memory: int) -> dict[Level, int]:
    """Bytes of the matrix for each level; `sharers` ranks share an L3, `ranks` the memory."""
    second, third = caches.get("L2") or L2, caches.get("L3") or L3
    inner = max(PART * second, LEAST)
    middle = max(PART * third / max(sharers, 1), 3 * inner)
    outer = max(2.0 * third, 4 * middle)
    room = memory / (2 * COPIES * ranks) if memory else math.inf
    wanted: dict[Level, float] = {"L2": inner, "L3": middle, "memory": min(outer, room)}
    return {level: int(min(max(n, LEAST), MOST)) for level, n in wanted.items()}


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


def product_probe(storage: str, level: Level, sub: Subdomain, lam: float, mu: float) -> Probe:
    """The product q = A d.

    Units: blocks of the whole stiffness; for dense, all stored blocks.
    """
    operator = build_operator(storage, sub, lam, mu)
    counted = operator if storage_of(storage).unit == "pairs" else build_operator("sym", sub, lam, mu)
    d, q = kernels.zeros(3 * sub.n_active), kernels.zeros(3 * sub.n_active)
    d[:] = 1.0
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


def updates_probe(level: Level, sub: Subdomain, before: Callable[[], object] | None = None) -> Probe:
    """Direction and step of an iteration; the step is zero, so values stay finite."""
    n = 3 * sub.n_active
    x, r, d, q = (kernels.zeros(n) for _ in range(4))
    r[:] = q[:] = 1.0
    vectors = kernels.CGVectors(x, r, d, q, r, kernels.zeros(0))
    direction, step = vectors.direction, vectors.step

    def call() -> None:
        direction(0.5)
        step(0.0)

    return Probe(
        phase="updates",
        level=level,
        unit="dofs",
        units=n,
        cells=sub.n_cells,
        n_bytes=9 * DOUBLE * n,
        number=AXPY,
        call=call,
        before=before,
    )


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
