"""What a rank imports before its clock runs, so that no phase contains an import."""

from fembench.fem.problem import load_presets
from fembench.mesh.adjacency import load_graphs
from fembench.mesh.io import load_meshio
from fembench.mesh.presets import box_named
from fembench.mesh.sliced import is_sliced
from fembench.partition.metis import load_metis
from fembench.records.case import Case
from fembench.solve.from_names import load_builders


def load_libraries(case: Case, rank: int) -> None:
    """Import what this rank needs to read, partition and solve; raises InputError for a wrong name."""
    import numpy.ma  # noqa: F401  np.unique imports it when it is first called

    load_builders(case.method)
    load_presets()
    if case.placement.partitioner == "blocks" or not (rank == 0 or case.placement.replicated):
        return
    if case.placement.ranks > 1 and case.placement.partitioner == "metis":
        load_metis()
    if is_sliced(case.question.mesh):
        if case.placement.partitioner == "metis":
            load_graphs()
    elif box_named(case.question.mesh) is None:
        load_meshio()
        load_graphs()
