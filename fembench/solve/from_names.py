"""Build a rank's solver from the names of its methods, and count its work.

The loops are in cg.py, recurrences.py and pipelined.py; PETSc's in petsc.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fembench.methods.lookup import load, precond_of, recurrence_of, storage_of
from fembench.methods.recipe import recipe
from fembench.methods.steps import Work
from fembench.solve.operators import build_operator
from fembench.solve.precond import make_preconditioner

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fembench.fem.materials import Modulus
    from fembench.methods.lookup import MethodChoice
    from fembench.ranks.interface import Interface
    from fembench.ranks.subdomain import Subdomain
    from fembench.solve.iterate import Solver
    from fembench.solve.operators import Operator, RankDevice
    from fembench.timing.tracer import TracerLike


def recurrence_class(name: str) -> Callable[..., Solver]:
    """The class of one of fembench's own recurrences. Raises InputError for an unknown name."""
    return load(recurrence_of(name).build)


def load_builders(choice: MethodChoice) -> None:
    """Import what `build_solver` will need, so that no import falls into a timed set."""
    storage = storage_of(choice.storage)
    precond = precond_of(choice.precond)
    builders = (
        storage.build,
        storage.product,
        precond.build,
        recurrence_of(choice.recurrence, choice.solver).build,
    )
    for reference in builders:
        if reference:
            load(reference)


def operator_on(
    device: RankDevice | None, storage: str, sub: Subdomain, lame: tuple[Modulus, Modulus]
) -> Operator:
    """The matrix of a rank in a storage, on its device if there is one, else on its core."""
    if device is None:
        return build_operator(storage, sub, *lame)
    return load(storage_of(storage).on_device)(sub, *lame, device)


def build_solver(
    choice: MethodChoice,
    sub: Subdomain,
    interface: Interface,
    lame: tuple[Modulus, Modulus],
    tracer: TracerLike,
    *,
    overlap: bool = True,
    options: Sequence[str] = (),
    device: RankDevice | None = None,
) -> Solver:
    """The solver with its matrix, preconditioner, vectors and bound kernels. Collective.

    `options` are PETSc's own; `device` holds matrix and vectors, if one is given.
    Raises InputError for an unknown name.
    """
    make = load(recurrence_of(choice.recurrence, choice.solver).build)
    if choice.solver == "petsc":
        names = {"storage": choice.storage, "precond": choice.precond, "options": options}
        return make(sub, interface, lame, tracer, **names)
    A = operator_on(device, choice.storage, sub, lame)
    M = make_preconditioner(choice.precond, A, interface, sub, tracer)
    product = Work(A.flops, A.bytes_per_product)
    work = recipe(choice).counted(interface.n_dofs, product, M.extra)
    return make(A, interface, M, tracer, overlap=overlap, work=work)
