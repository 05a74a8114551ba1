"""The probes of a rank's speed: fembench's own kernels, on local data of several sizes.

    assembly   the symmetric matrix of a box, from its cells        cells
    product    q = A d in each storage                              blocks (3x3, of the whole stiffness)
    updates    the two vector passes of a CG iteration; in L3, each
               follows a product, as in a run, which leaves little
               of the vectors in L2; in memory, vectors with as many
               bytes as the matrix, of which no cache keeps a part  dofs
    triad      a = b + s c                                          bytes, as in `bandwidth`
    read       the sum of an array                                  bytes
    pack       values of an interface into a message                bytes
    unpack     a message, added to the interface                    bytes

The last two are measured where some ranks compute on devices: there, they copy between
the memories of device and host. The interface is a face of the box.

The sizes are such that the symmetric matrix fits into the second-level cache,
into this rank's part of the third-level cache, or into neither. Products and
updates are also measured in between, from half of that part to twice it: where the
cache no longer holds all data, speed falls steeply. Other storages
use the same mesh, as in a run; dense uses a smaller one, whose matrix has as many
bytes as the symmetric matrix.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from fembench.bench.prepare import prepare
from fembench.host.machine_state import DOUBLE
from fembench.kernels.backend import kernels
from fembench.methods.lookup import load, names, storage_of, storages
from fembench.ranks.comm import alone
from fembench.ranks.subdomain import Subdomain
from fembench.records.case import Case
from fembench.records.phases import ASSEMBLY, AXPY, SEND, SPMV_INTERIOR, UNPACK
from fembench.records.profile import BETWEEN, Level
from fembench.solve.operators import Operator, RankDevice, build_operator
from fembench.timing.tracer import NullTracer

STORAGES = names(s for s in storages("own") if s.unit != "pairs")  # dense has another mesh
ON_DEVICE = names(s for s in storages("own") if s.on_device)
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
    second = caches.get("L2") or L2
    third = caches.get("L3") or L3
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


def _kernels(device: RankDevice | None) -> Any:
    """Those of a device, or the compiled ones."""
    return kernels if device is None else device


def operator_of(
    storage: str, sub: Subdomain, lam: float, mu: float, device: RankDevice | None = None
) -> Operator:
    """The operator of a rank on its cores, or on its device."""
    if device is None:
        return build_operator(storage, sub, lam, mu)
    return load(storage_of(storage).on_device)(sub, lam, mu, device)


def assembly_probe(
    level: Level, sub: Subdomain, lam: float, mu: float, device: RankDevice | None = None
) -> Probe:
    """Assembly of the symmetric matrix, the first step of a set."""
    return Probe(
        phase="assembly",
        level=level,
        unit="cells",
        units=sub.n_cells,
        cells=sub.n_cells,
        n_bytes=operator_of("sym", sub, lam, mu, device).matrix_bytes,
        number=ASSEMBLY,
        call=lambda: operator_of("sym", sub, lam, mu, device),
    )


class CGArrays(NamedTuple):
    """The vectors of CG, all of a length."""

    x: Any
    r: Any
    d: Any
    q: Any


def arrays_of(n: int, device: RankDevice | None = None) -> CGArrays:
    """Vectors of n entries: x = 0, the others 1."""
    found = CGArrays(*(_kernels(device).empty(n) for _ in CGArrays._fields))
    for v, value in zip(found, (0.0, 1.0, 1.0, 1.0)):
        v[:] = value
    return found


def product_probe(
    storage: str,
    level: Level,
    sub: Subdomain,
    lam: float,
    mu: float,
    arrays: CGArrays | None = None,
    device: RankDevice | None = None,
) -> Probe:
    """The product q = A d.

    Units: blocks of the whole stiffness; for dense, all stored blocks.
    """
    operator = operator_of(storage, sub, lam, mu, device)
    counted = operator if storage_of(storage).unit == "pairs" else build_operator("sym", sub, lam, mu)
    _, _, d, q = arrays or arrays_of(3 * sub.n_active, device)
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
    device: RankDevice | None = None,
) -> Probe:
    """Direction and step of an iteration, each after `before`, if there is one; the
    step is zero, so values stay finite."""
    x, r, d, q = arrays or arrays_of(3 * sub.n_active, device)
    vectors = _kernels(device).CGVectors(x, r, d, q, r, kernels.zeros(0))

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
        units=x.size,
        cells=round(sub.n_cells * x.size / (3 * sub.n_active)),
        n_bytes=9 * DOUBLE * x.size,
        number=AXPY,
        call=direction if before else both,
        before=before,
        then=step if before else None,
    )


def iteration_probes(
    level: Level,
    sub: Subdomain,
    lam: float,
    mu: float,
    storages: Sequence[str] = STORAGES,
    device: RankDevice | None = None,
) -> list[Probe]:
    """Products in these storages, and updates, of the same vectors, in turn as in a run.

    In the second-level cache, calls are too short to be timed one by one: there, each is
    repeated. What updates leave in a cache matters to a product only where it is just
    too small for all. In memory, ranks of a run make a pass at the same time, which
    takes more bandwidth than a product: there, updates follow each other, of vectors
    that are longer than those of the part.
    """
    arrays = arrays_of(3 * sub.n_active, device)
    products = [product_probe(storage, level, sub, lam, mu, arrays, device) for storage in storages]
    sym = products[storages.index("sym")].call
    if level == "memory":
        long = arrays_of(3 * (sub.n_active * NODE_BYTES // (3 * DOUBLE * len(arrays))), device)
        return [*products, updates_probe(level, sub, long, device=device)]
    if level == BETWEEN:
        updates = updates_probe(level, sub, arrays, device=device).call
        products = [replace(product, before=updates) for product in products]
    return [*products, updates_probe(level, sub, arrays, None if level == "L2" else sym, device)]


def copy_probes(level: Level, sub: Subdomain, device: RankDevice | None) -> Iterator[Probe]:
    """Packing and adding the values of one face of the box."""
    of_rank, n = _kernels(device), sub.n_active
    face = np.arange(n - max(1, round(n ** (2 / 3))), n, dtype=np.int32)
    v = of_rank.empty(3 * n)
    message = kernels.zeros(3 * face.size)
    v[:] = 0.0
    pack = of_rank.Pack(v, face, message).run
    add = of_rank.NeighbourSum(v, 3 * int(face[0]), 0, [face], [message]).run
    for phase, number, call in (("pack", SEND, pack), ("unpack", UNPACK, add)):
        yield Probe(
            phase=phase,
            level=level,
            unit="bytes",
            units=message.nbytes,
            cells=sub.n_cells,
            n_bytes=message.nbytes,
            number=number,
            call=call,
        )


def memory_probes(level: Level, n_bytes: int, device: RankDevice | None = None) -> Iterator[Probe]:
    """Triad and read of arrays with `n_bytes` bytes in total."""
    of_rank = _kernels(device)
    for phase, arrays in (("triad", 3), ("read", 1)):
        n = max(1, n_bytes // (arrays * DOUBLE))
        yield Probe(
            phase=phase,
            level=level,
            unit="bytes",
            units=arrays * DOUBLE * n,
            n_bytes=arrays * DOUBLE * n,
            number=AXPY,
            call=_triad(of_rank, n) if phase == "triad" else of_rank.Stream(n).read,
        )


def _triad(of_rank: Any, n: int) -> Callable[[], object]:
    run = of_rank.Triad(n).run
    return lambda: run(0.5)
