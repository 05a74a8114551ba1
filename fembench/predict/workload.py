"""What every rank has to do in a CG run on a mesh cut into shares: exact, from the partition."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fembench.base.errors import InputError
from fembench.fem.boundary import fixed_dofs
from fembench.fem.extent import Extent
from fembench.fem.problem import load_problem, needs_boundary
from fembench.fem.selection import BOUNDARY
from fembench.mesh.facets import boundary_facets
from fembench.mesh.mesh import Mesh
from fembench.mesh.presets import resolve
from fembench.partition.methods import partition
from fembench.partition.partition import metrics
from fembench.partition.shares import parse_shares
from fembench.records.case import Case
from fembench.records.record import PartitionFacts, Record


@dataclass(frozen=True)
class Workload:
    """Ranks' parts of one run."""

    case: Case
    mesh_hash: str
    n_equations: int
    parts: PartitionFacts

    @property
    def ranks(self) -> int:
        return len(self.parts.cells)

    @property
    def product_unit(self) -> str:
        """What product_units() counts, as tables call it."""
        return "cells" if self.case.storage == "ebe" else "blocks"

    def product_units(self) -> tuple[int, ...]:
        """[rank] what a product's time grows with: 3x3 blocks; cells where it goes from cell to cell."""
        if self.product_unit == "cells":
            return self.parts.cells
        if self.case.storage == "dense":  # which has all pairs of nodes
            return tuple((dofs // 3) ** 2 for dofs in self.parts.dofs)
        return self.parts.blocks

    def exchange(self, rank: int) -> list[tuple[int, int]]:
        """(neighbour, bytes) of a rank's messages in one product."""
        return list(zip(self.parts.neighbours[rank], self.parts.message_bytes[rank]))

    def interface_part(self, rank: int) -> float:
        """Part of a rank's product that must be done before its messages leave: rows of shared nodes."""
        return min(1.0, self.parts.shared_dofs[rank] / max(self.parts.dofs[rank], 1))


def workload(case: Case, mesh: Mesh | None = None) -> Workload:
    """Cut the case's mesh, as a run would. Raises InputError."""
    if case.partitioner == "blocks":
        raise InputError("partitioner blocks cuts under MPI only; expected metis or rcb")
    mesh = resolve(case.mesh) if mesh is None else mesh
    shares = parse_shares(case.shares, case.ranks)
    fixed = restrained(case.problem, mesh)
    parts = metrics(mesh, partition(mesh, shares, method=case.partitioner, seed=case.seed), fixed)
    return Workload(case, mesh.hash, int(fixed.size - fixed.sum()), parts)


def of_record(record: Record) -> Workload:
    """That of a run that was made."""
    return Workload(record.case, record.mesh.hash, record.mesh.n_equations, record.partition)


def restrained(problem: str, mesh: Mesh) -> npt.NDArray[np.bool_]:
    """(n_nodes, 3) dofs that the problem holds."""
    spec = load_problem(problem)
    extent = Extent(mesh.x.min(axis=0), mesh.x.max(axis=0))
    return fixed_dofs(spec, _Nodes(mesh, needs_boundary(spec)), extent)[0]


class _Nodes:
    """A whole mesh as constraints want to see it."""

    def __init__(self, mesh: Mesh, with_boundary: bool) -> None:
        self.x = mesh.x
        tags = {**mesh.facet_tags, **mesh.node_tags}
        if with_boundary:
            tags[BOUNDARY] = boundary_facets(mesh.cells, mesh.element)[0]
        self.node_tags = {tag: _mask(nodes.ravel(), mesh.n_nodes) for tag, nodes in tags.items()}


def _mask(nodes: npt.NDArray[np.int32], n: int) -> npt.NDArray[np.bool_]:
    mask = np.zeros(n, bool)
    mask[nodes] = True
    return mask
