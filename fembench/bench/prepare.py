"""From a case to the data of every rank: mesh, partition, subdomain, interface, load.

Phases traced: read, partition, distribute, interface, verify, assembly.

Facts about the resulting partition, gathered from the ranks;
no rank needs the whole mesh."""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import numpy as np
from msgspec import Struct

from fembench.base.arrays import F64
from fembench.base.errors import InputError
from fembench.fem.boundary import fixed_dofs, right_hand_side
from fembench.fem.extent import Extent, extent_of
from fembench.fem.materials import Modulus, lame
from fembench.fem.parts import check_parts, whole_mesh
from fembench.fem.problem import ProblemSpec, load_problem, needs_boundary
from fembench.fem.survey import check, merge, survey
from fembench.kernels.backend import kernels
from fembench.mesh.facets import facet_parts
from fembench.mesh.mesh import Mesh
from fembench.mesh.presets import box_named, resolve
from fembench.mesh.sliced import Sliced, is_sliced
from fembench.partition.methods import partition
from fembench.partition.partition import Partition, count_cut
from fembench.partition.shares import parse_shares
from fembench.ranks.box import box_hash, box_piece, plan_of
from fembench.ranks.box import count_cut as count_cut_of_box
from fembench.ranks.comm import MAX, MIN, SUM, Comm, on_root, together
from fembench.ranks.interface import Interface
from fembench.ranks.piece import Piece, extract, rows_in_space, scatter, tagged_facets
from fembench.ranks.sliced import RanksWorld, cut_slice, migrate, read_slice, sliced_piece
from fembench.ranks.subdomain import Subdomain, build_subdomain, find_sharing
from fembench.records.case import Case
from fembench.records.phases import ASSEMBLY, DISTRIBUTE, INTERFACE, PARTITION, READ, VERIFY
from fembench.records.record import MeshFacts, PartitionFacts
from fembench.solve.operators import RankDevice
from fembench.timing.tracer import TracerLike, span

T = TypeVar("T")


class Prepared(Struct, frozen=True):
    """One rank's problem, ready to be assembled and solved."""

    sub: Subdomain
    interface: Interface
    spec: ProblemSpec
    extent: Extent
    rhs: F64  # (3 * n_active,) unsummed right-hand side, restrained dofs zero
    mesh: MeshFacts
    partition: PartitionFacts
    device: RankDevice | None = None  # that the rank computes on; None: the cores of its host

    @property
    def lame(self) -> tuple[Modulus, Modulus]:
        """(lam, mu) of the rank's cells, Pa."""
        return lame(self.spec, self.sub)


class Origin(Struct, frozen=True):
    """Facts about the whole mesh and its partition."""

    name: str
    hash: str
    targets: tuple[float, ...]
    cut: int | None  # facets between parts; None if they must be counted


def prepare(comm: Comm, case: Case, tracer: TracerLike) -> Prepared:
    """Read, partition, distribute, find the interface.
    Collective; all raise input errors."""
    with span(tracer, READ):
        spec = together(comm, lambda: load_problem(case.question.problem))
        targets = together(comm, lambda: parse_shares(case.placement.shares, comm.size))
    if case.placement.partitioner == "blocks":
        return _prepare_box(comm, case, spec, targets, tracer)
    if (
        case.placement.partitioner == "rcb"
        and is_sliced(case.question.mesh)
        and not case.placement.replicated
    ):
        return _prepare_sliced(comm, case, spec, targets, tracer)
    with span(tracer, READ):
        mesh = _where_needed(comm, case, lambda: resolve(case.question.mesh))
    with span(tracer, PARTITION):
        parts = _where_needed(comm, case, lambda: _cut(mesh, targets, case))
    prepared = prepare_parts(comm, case, spec, mesh, parts, tracer)
    if box_named(case.question.mesh) is None:  # a box is one part
        with span(tracer, VERIFY):
            on_root(comm, lambda: _check_parts(spec, mesh, prepared.extent))
    return prepared


def prepare_parts(
    comm: Comm, case: Case, spec: ProblemSpec, mesh: Mesh | None, parts: Partition | None, tracer: TracerLike
) -> Prepared:
    """Distribute a partitioned mesh of rank 0 or, if replicated, of all. Collective."""
    with span(tracer, DISTRIBUTE):
        piece = _piece(comm, case, mesh, parts, needs_boundary(spec))
    with span(tracer, VERIFY):
        origin = comm.bcast(_origin(mesh, parts) if comm.rank == 0 else None)
    return _prepare_piece(comm, case, spec, piece, origin, tracer)


def _origin(mesh: Mesh | None, parts: Partition | None) -> Origin | None:
    if mesh is None or parts is None:
        return None
    return Origin(mesh.name, mesh.hash, parts.targets, count_cut(mesh, parts))


def _prepare_box(
    comm: Comm, case: Case, spec: ProblemSpec, targets: tuple[float, ...], tracer: TracerLike
) -> Prepared:
    """Generate a box in parallel: reading and partitioning are one step."""
    with span(tracer, READ):
        plan = together(comm, lambda: plan_of(case.question.mesh))
        piece = together(comm, lambda: box_piece(plan, targets, comm.rank))
    return _prepare_piece(comm, case, spec, piece, Origin(plan.title, box_hash(plan), targets, None), tracer)


def _prepare_sliced(
    comm: Comm, case: Case, spec: ProblemSpec, targets: tuple[float, ...], tracer: TracerLike
) -> Prepared:
    """Every rank reads a slice; partition and migration of the cells are the work of all."""
    with span(tracer, READ):
        mesh = together(comm, lambda: Sliced(case.question.mesh))
        steps = read_slice(comm, mesh)
    with span(tracer, PARTITION):
        part = together(comm, partial(cut_slice, comm, mesh, steps, targets))
        del steps
    with span(tracer, DISTRIBUTE):
        cells = migrate(comm, mesh, part)
        del part
        several = mesh.manifest.n_parts > 1
        numbers = cells.numbers.copy() if several else cells.numbers
        piece = [sliced_piece(comm, mesh, cells)]
    origin = Origin(mesh.manifest.name, mesh.manifest.hash, targets, None)
    prepared = _prepare_piece(comm, case, spec, piece.pop(), origin, tracer)  # which uses it up
    with span(tracer, VERIFY):
        sub = prepared.sub
        parts = cells.parts[np.searchsorted(numbers, sub.global_cells)] if several else cells.parts
        own = parts, RanksWorld(comm), sub.global_nodes
        together(comm, lambda: check_parts(spec, sub, prepared.extent, *own))
    return prepared


def _prepare_piece(
    comm: Comm, case: Case, spec: ProblemSpec, piece: Piece, origin: Origin, tracer: TracerLike
) -> Prepared:
    with span(tracer, INTERFACE):
        sharing = find_sharing(comm, piece.global_nodes)
        extent = _extent(comm, piece.x)
        restrained = fixed_dofs(spec, piece, extent)
        sub, active = build_subdomain(piece, sharing, restrained, rows_in_space)
        del piece, sharing
        blocking = case.method.exchange == "blocking"
        interface = Interface(comm, active, sub.n_interior, sub.n_active, blocking=blocking)
    with span(tracer, VERIFY):
        found = comm.allreduce(survey(spec, sub, extent), lambda a, b: merge((a, b)))
        together(comm, lambda: check(spec, found))
        cut = origin.cut if origin.cut is not None else count_cut_of_box(comm, sub)
        mesh_facts = _mesh_facts(comm, origin, sub)
        part_facts = partition_facts(comm, case, sub, interface, origin.targets, cut)
    with span(tracer, ASSEMBLY):
        rhs = right_hand_side(spec, sub, extent)[: sub.n_active].ravel()
    return Prepared(sub, interface, spec, extent, rhs, mesh_facts, part_facts)


def _where_needed(comm: Comm, case: Case, make: Callable[[], T]) -> T | None:
    """make() on rank 0, or on every rank if the case is replicated. Collective."""
    return together(comm, make) if case.placement.replicated else on_root(comm, make)


def _cut(mesh: Mesh | None, targets: tuple[float, ...], case: Case) -> Partition:
    assert mesh is not None
    return partition(mesh, targets, method=case.placement.partitioner, seed=case.placement.seed)


def _check_parts(spec: ProblemSpec, mesh: Mesh | None, extent: Extent) -> None:
    assert mesh is not None
    check_parts(spec, whole_mesh(spec, mesh), extent, facet_parts(mesh.behind))


def _piece(
    comm: Comm,
    case: Case,
    mesh: Mesh | None,
    parts: Partition | None,
    with_boundary: bool,
) -> Piece:
    if case.placement.replicated and mesh is not None and parts is not None:
        return extract(mesh, parts, comm.rank, tagged_facets(mesh, with_boundary=with_boundary))
    return scatter(comm, mesh, parts, with_boundary=with_boundary)


def _extent(comm: Comm, x: F64) -> Extent:
    """The bounding box of the whole mesh. Collective."""
    own, lo, hi = extent_of(x), np.empty(3), np.empty(3)
    comm.Allreduce(own.lo, lo, MIN)
    comm.Allreduce(own.hi, hi, MAX)
    return Extent(lo, hi)


def _mesh_facts(comm: Comm, origin: Origin, sub: Subdomain) -> MeshFacts:
    """Counts from the parts. Collective; raises InputError on all ranks."""
    worst = np.empty(1)
    lowest = np.array([kernels.lowest_quality(sub.x, sub.cells)])
    comm.Allreduce(lowest, worst, MIN)
    if worst[0] <= 0:
        raise InputError(f"mesh {origin.name}: some cells are flat or inverted; expected volumes above 0")
    owned = sub.owned_nodes
    local = np.array([owned.sum(), sub.n_cells, sub.n_free_owned, sub.restrained[owned].sum()], np.int64)
    counts = np.empty_like(local)
    comm.Allreduce(local, counts, SUM)
    n_nodes, n_cells, n_equations, n_fixed = counts.tolist()
    return MeshFacts(
        name=origin.name,
        hash=origin.hash,
        element=sub.element,
        n_nodes=n_nodes,
        n_cells=n_cells,
        n_equations=n_equations,
        n_fixed=n_fixed,
        min_quality=float(worst[0]),
    )


def partition_facts(
    comm: Comm, case: Case, sub: Subdomain, interface: Interface, targets: tuple[float, ...], cut: int
) -> PartitionFacts:
    """Shares, sizes and neighbours of every part. Collective."""
    rows = comm.allgather((_sizes(sub), interface.neighbours, interface.message_bytes))
    sizes = np.array([row[0] for row in rows]).T.tolist()
    cells, dofs, blocks, shared, shared_all = (tuple(column) for column in sizes)
    return PartitionFacts(
        method=case.placement.partitioner + (", replicated" if case.placement.replicated else ""),
        targets=targets,
        cells=cells,
        dofs=dofs,
        blocks=blocks,
        shared_dofs=shared,
        shared_dofs_all=shared_all,
        neighbours=tuple(row[1] for row in rows),
        message_bytes=tuple(row[2] for row in rows),
        cut=cut,
        seed=case.placement.seed,
    )


def _sizes(sub: Subdomain) -> tuple[int, int, int, int, int]:
    """(cells, free dofs, 3x3 blocks, shared free dofs, shared dofs) of this part."""
    free = ~sub.restrained
    shared = sub.sharers > 1
    return (
        sub.n_cells,
        int(free.sum()),
        kernels.count_blocks(sub.cells, sub.n_active),
        int(free[shared].sum()),
        3 * int(shared.sum()),
    )
