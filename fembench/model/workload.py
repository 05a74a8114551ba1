"""The work of every rank in a CG run, exactly, from the partition of the mesh."""

import functools
from dataclasses import dataclass
from typing import Any

from fembench.base.arrays import Mask
from fembench.base.errors import InputError
from fembench.fem.boundary import fixed_dofs
from fembench.fem.parts import check_whole, whole_mesh
from fembench.fem.problem import load_problem, resolved
from fembench.mesh.mesh import Mesh
from fembench.mesh.presets import resolve
from fembench.methods.lookup import storage_of
from fembench.methods.recipe import Recipe, recipe
from fembench.partition.methods import partition
from fembench.partition.partition import metrics
from fembench.partition.shares import parse_shares
from fembench.records.case import Case
from fembench.records.record import PartitionFacts, Record


@dataclass(frozen=True)
class Workload:
    """The parts of one run."""

    case: Case
    mesh_hash: str
    n_equations: int
    parts: PartitionFacts

    @property
    def ranks(self) -> int:
        return len(self.parts.cells)

    @functools.cached_property
    def recipe(self) -> Recipe:
        """What an iteration consists of. Raises InputError for a method of unknown cost."""
        return recipe(self.case.method)

    @functools.cached_property
    def product_unit(self) -> str:
        """The name, in tables, of the units of product_units()."""
        return "cells" if storage_of(self.case.method.storage).unit == "cells" else "blocks"

    def product_units(self) -> tuple[int, ...]:
        """(n_ranks,) units of a product: 3x3 blocks, or cells, element by element."""
        if self.product_unit == "cells":
            return self.parts.cells
        if storage_of(self.case.method.storage).unit == "pairs":
            return tuple((dofs // 3) ** 2 for dofs in self.parts.dofs)
        return self.parts.blocks

    def exchange(self, rank: int) -> list[tuple[int, int]]:
        """(neighbour, bytes) of each message of a rank in one product."""
        return list(zip(self.parts.neighbours[rank], self.parts.message_bytes[rank]))

    @functools.cached_property
    def grids(self) -> tuple[list[float], list[float]]:
        """(nodes of each grid that all ranks have, of each grid on rank 0) below the mesh."""
        return self.recipe.grids(self.n_equations, self.n_equations)

    def interface_part(self, rank: int) -> float:
        """Fraction of a rank's product before its messages: the rows of shared nodes."""
        return min(1.0, self.parts.shared_dofs[rank] / max(self.parts.dofs[rank], 1))


def workload(case: Case, mesh: Mesh | None = None) -> Workload:
    """The workload of a case; partitions the mesh as a run would. Raises InputError."""
    if case.placement.partitioner == "blocks":
        raise InputError("partitioner blocks works under MPI only; expected metis or rcb")
    mesh = resolve(case.question.mesh) if mesh is None else mesh
    shares = parse_shares(case.placement.shares, case.placement.ranks)
    fixed = restrained(case.question.problem, mesh)
    parts = metrics(
        mesh, partition(mesh, shares, method=case.placement.partitioner, seed=case.placement.seed), fixed
    )
    return Workload(case, mesh.hash, int(fixed.size - fixed.sum()), parts)


def of_record(record: Record) -> Workload:
    """The workload of a recorded run."""
    return Workload(record.case, record.mesh.hash, record.mesh.n_equations, record.partition)


def restrained(problem: str, mesh: Mesh) -> Mask:
    """(n_nodes, 3) whether each dof is fixed. Raises InputError if the mesh does not fit."""
    spec = load_problem(problem)
    geometry = whole_mesh(spec, mesh)
    check_whole(spec, geometry)
    return fixed_dofs(spec, geometry, geometry.extent)


def problem_of(case: Case) -> dict[str, Any]:
    """The problem as in a record: plain values of every field."""
    return resolved(load_problem(case.question.problem))
