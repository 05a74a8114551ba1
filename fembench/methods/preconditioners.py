"""Every preconditioner: which solvers have it, what builds it, what one application costs."""

from dataclasses import dataclass

from fembench.methods.steps import Gathering, Multiplication, Pass, Step, StoredInverse
from fembench.methods.storages import Solver

CHEBYSHEV_DEGREE = 4  # products of an application, plus one
SMALL_LEVEL = 4000  # nodes of a level of multigrid that lives on rank 0
SMOOTHING_STEPS = 3  # of multigrid, before and after each coarse correction
NOT_STORED = StoredInverse()


@dataclass(frozen=True)
class PreconditionerMethod:
    """One preconditioner M.

    Where `inverse` stores numbers, M^-1 is folded into the passes over vectors by every variant that can, and
    costs no step of its own there.
    """

    name: str
    help: str
    build: str = ""  # "module:function", (A, interface, sub, tracer) -> Preconditioner; collective
    solvers: tuple[Solver, ...] = ("own",)
    application: tuple[Step, ...] | None = ()  # z = M^-1 r; None: the cost is not known
    inverse: StoredInverse = NOT_STORED
    coarse: int = 0  # entries of its coarse matrix, per kind of node and rank
    coarse_per_dof: float = 0.0  # doubles of coarse matrices that an application reads, per entry of a vector
    # a, b: a n^b iterations for n equations, measured on boxes, to the default tolerance
    iterations: tuple[float, float] = (25.0, 1 / 3)
    node_bytes: int = 0  # memory per mesh node, at most, beyond what every preconditioner takes
    block_inverse: str = ""  # "module:function" of the summed diagonal blocks, for --balance; "": not there
    uses_parts: bool = False  # built from the parts: a different M on every number of ranks

    @property
    def identity(self) -> bool:
        """Whether M = I."""
        return self.application == ()

    @property
    def folds(self) -> bool:
        """Whether M^-1 can be folded into the passes over vectors."""
        return self.inverse.numbers > 0

    @property
    def balances(self) -> bool:
        """Whether it works with --balance."""
        return self.identity or bool(self.block_inverse)

    def coarse_entries(self, kinds: float, ranks: int, dofs: float) -> float:
        """Of the coarse matrices on a rank with this many kinds of nodes, each shared by other ranks."""
        return self.coarse * kinds * ranks + self.coarse_per_dof * dofs


_DIAGONAL = (Pass("r M", "z"),)
_SMOOTHING_STEP = (
    Multiplication(),
    Pass("z r d q D", "z r d", flops=10),
)  # D: 3x3 blocks, 6 floats for 3 entries
_CHEBYSHEV_STEP = (Multiplication(), Pass("z r d q D", "z r d", flops=6))

PRECONDITIONERS = (
    PreconditionerMethod(
        name="none",
        help="no preconditioner",
        build="fembench.solve.precond:identity",
        solvers=("own", "petsc"),
    ),
    PreconditionerMethod(
        name="jacobi",
        help="inverse diagonal",
        build="fembench.solve.precond:jacobi",
        solvers=("own", "petsc"),
        application=_DIAGONAL,
        inverse=StoredInverse(numbers=1, flops=1),
        iterations=(21.0, 1 / 3),
        block_inverse="fembench.solve.precond:reciprocals",
    ),
    PreconditionerMethod(
        name="block-jacobi",
        help="inverse 3x3 diagonal blocks",
        build="fembench.solve.precond:block_jacobi",
        application=_DIAGONAL,
        inverse=StoredInverse(numbers=2, flops=5),
        iterations=(19.0, 1 / 3),
        block_inverse="fembench.solve.precond:inverted",
    ),
    PreconditionerMethod(
        name="chebyshev",
        help=f"Chebyshev polynomial of degree {CHEBYSHEV_DEGREE - 1}",
        build="fembench.solve.precond:chebyshev",
        application=(
            Pass("r", "t"),
            Pass("t D", "d", flops=1),
            Pass("d", "d", flops=1),
            Pass("d", "z"),
            *_CHEBYSHEV_STEP * (CHEBYSHEV_DEGREE - 1),
        ),
        iterations=(5.8, 1 / 3),
    ),
    PreconditionerMethod(
        name="two-level",
        help="inverse diagonal and the rigid motions of all parts",
        build="fembench.solve.precond:two_level",
        application=(Pass("x r", flops=6), Gathering(6), Pass("x r D", "z", flops=7)),
        coarse=36,
        iterations=(10.0, 1 / 3),
        uses_parts=True,
    ),
    PreconditionerMethod(
        name="multigrid",
        help="a V-cycle on background grids",
        build="fembench.solve.precond:multigrid",
        application=(
            Pass("x", "r"),
            Pass("r D", "z d", flops=6),
            *_SMOOTHING_STEP * (2 * SMOOTHING_STEPS - 1),
            Multiplication(),
            Pass("r q", "r", flops=1),
            Pass("z d", "z", flops=1),
        ),
        coarse_per_dof=20.0,  # tetrahedral boxes: 0.28 x 22 floats of storage sym, each read six times
        iterations=(9.0, 0.0),
        node_bytes=1000,
    ),
    PreconditionerMethod(
        name="gamg",
        help="algebraic multigrid of PETSc",
        solvers=("petsc",),
        application=None,
        uses_parts=True,
    ),
)
