"""Every preconditioner: which solvers have it, what builds it, what it costs."""

from msgspec import Struct

from fembench.methods.steps import (
    CoarseCorrection,
    Gathering,
    Multiplication,
    Pass,
    Step,
    StoredInverse,
    Work,
)
from fembench.methods.storages import Solver

CHEBYSHEV_DEGREE = 4  # products of an application, plus one
SMALL_LEVEL = 4000  # nodes of a level of multigrid that lives on rank 0
COARSEST_LEVEL = 150  # nodes of a level that is solved directly
SMOOTHING_STEPS = 3  # of multigrid, before and after each coarse correction
NOT_STORED = StoredInverse()


class Grids(Struct, frozen=True):
    """Grids below the mesh, each with twice the spacing of the one above it.

    Their sizes are those of a cube of nodes, each with the 26 around it as neighbours.
    """

    blocks: int = 27  # 3x3 blocks of a matrix per node, each pair of nodes once in memory
    block_bytes: int = 40  # nine numbers in single precision, and an index

    @property
    def product(self) -> Work:
        """Of a grid's matrix, per node, vectors apart."""
        return Work(18 * self.blocks, self.block_bytes * (self.blocks + 1) / 2)

    def below(self, mesh: float, part: float) -> tuple[list[float], list[float]]:
        """(nodes of a part on each shared grid, nodes of each grid on rank 0).

        mesh, part: so many nodes. The last grid is solved directly.
        """
        shared: list[float] = []
        small: list[float] = []
        while len(small) < 2 or small[-1] > COARSEST_LEVEL:
            mesh, part = _halved(mesh), _halved(part)
            if small or mesh <= SMALL_LEVEL:
                small.append(mesh)
            else:
                shared.append(part)
        return shared, small


def _halved(nodes: float) -> float:
    """Nodes of a cube with twice the spacing."""
    return ((nodes ** (1 / 3) + 1) / 2) ** 3


class PreconditionerMethod(Struct, frozen=True):
    """One preconditioner M.

    Where `inverse` stores numbers, M^-1 is folded into the passes over vectors by every
    recurrence that can, and costs no step of its own there.
    """

    name: str
    help: str
    build: str = ""  # "module:function", (A, interface, sub, tracer) -> Preconditioner; collective
    solvers: tuple[Solver, ...] = ("own",)
    application: tuple[Step, ...] | None = ()  # z = M^-1 r; None: the cost is not known
    inverse: StoredInverse = NOT_STORED
    coarse: int = 0  # entries of its coarse matrix, per kind of node and rank
    grids: Grids | None = None  # below the mesh, if the application has a coarse correction
    # a, b: a n^b iterations for n equations, measured on boxes, to the default tolerance
    iterations: tuple[float, float] = (25.0, 1 / 3)
    set_up: tuple[float, float] = (0.0, 0.0)  # seconds, and iterations that take as long
    node_bytes: int = 0  # most memory per mesh node beyond that of every preconditioner
    block_inverse: str = ""  # "module:function" of the diagonal blocks, for --balance
    device_kernels: bool = False  # a device has those of its own steps
    thread_kernels: bool = False  # several threads of a rank share its own steps
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

    @property
    def on_device(self) -> bool:
        """Whether a device has its passes: none, those of its own, or those into which M^-1 is folded."""
        return self.identity or self.folds or self.device_kernels

    @property
    def threads(self) -> bool:
        """Whether several threads of a rank share its work."""
        return self.identity or self.folds or self.thread_kernels

    def coarse_entries(self, kinds: float, ranks: int) -> float:
        """Of the coarse matrix on a rank with so many kinds of shared nodes."""
        return self.coarse * kinds * ranks


_DIAGONAL = (Pass("r M", "z"),)
# D: 3x3 blocks, 6 floats for 3 entries
_SMOOTHING_STEP = (Multiplication(), Pass("z r d q D", "z r d", flops=10))
_CHEBYSHEV_STEP = (Multiplication(), Pass("z r d q D", "z r d", flops=6))
# P: numbers and weights of 8 parents, 64 bytes per node; in a box 27 / 8 of them count
_RESTRICTION = Pass("r", flops=7, more=8 / 3)
_PROLONGATION = Pass("", "d", flops=7, more=8 / 3)

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
        build="fembench.solve.precond:ChebyshevPreconditioner",
        application=(
            Pass("r", "t"),
            Pass("t D", "d z", flops=2),
            *_CHEBYSHEV_STEP * (CHEBYSHEV_DEGREE - 1),
        ),
        iterations=(5.8, 1 / 3),
        set_up=(0.001, 8.0),
        device_kernels=True,
        thread_kernels=True,
    ),
    PreconditionerMethod(
        name="two-level",
        help="inverse diagonal and the rigid motions of all parts",
        build="fembench.solve.coarse:TwoLevel",
        application=(Pass("x r", flops=6), Gathering(6), Pass("x r D", "z", flops=7)),
        coarse=36,
        iterations=(10.0, 1 / 3),
        set_up=(0.003, 3.0),
        uses_parts=True,
    ),
    PreconditionerMethod(
        name="multigrid",
        help="a V-cycle on background grids",
        build="fembench.solve.multigrid:Multigrid",
        application=(
            Pass("x", "r"),
            Pass("r D", "z d", flops=6),
            *_SMOOTHING_STEP * (SMOOTHING_STEPS - 1),
            Multiplication(),
            Pass("r q", "r", flops=1),
            _RESTRICTION,
            CoarseCorrection(),
            _PROLONGATION,
            Pass("z d", "z", flops=1),
            *_SMOOTHING_STEP * SMOOTHING_STEPS,
        ),
        grids=Grids(),
        iterations=(9.0, 0.0),
        set_up=(0.05, 6.0),
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
