"""Every recurrence of conjugate gradients, with the steps of one iteration in their order.

An iteration is declared for each way in which M^-1 can enter: not at all, folded into
the passes over vectors, or applied as a step of its own. Letters as in the docstrings
of solve/cg.py, recurrences.py and pipelined.py.
"""

from msgspec import Struct

from fembench.methods.steps import Application, Multiplication, Pass, Reduction, Step
from fembench.methods.storages import Solver


class RecurrenceMethod(Struct, frozen=True):
    """One recurrence."""

    name: str
    help: str
    build: str  # "module:class" of (A, interface, M, tracer, overlap, work); PETSc: of its solver
    plain: tuple[Step, ...]  # without a preconditioner
    applied: tuple[Step, ...]
    folded: tuple[Step, ...] = ()  # (): M^-1 is never folded in
    solver: Solver = "own"
    replace: int = 0  # iterations between two residual replacements; 0: there are none
    replace_products: int = 0  # of one replacement
    replace_applications: int = 0
    balances: bool = False  # works with --balance
    on_device: bool = False  # a device has its passes over vectors
    threads: bool = False  # several threads of a rank share its passes over vectors

    @property
    def waits(self) -> bool:
        """Whether ranks wait for every sum where it is begun."""
        return not any(isinstance(s, Reduction) and s.part != "whole" for s in self.plain)


_MULTIPLY = (Multiplication(dot=True), Reduction(1))
_PIPELINED = (Reduction(3, "begin"), Multiplication(), Reduction(3, "end"))

RECURRENCES = (
    RecurrenceMethod(
        name="standard",
        help="two all-reduces per iteration",
        build="fembench.solve.cg:ConjugateGradients",
        plain=(
            Pass("d r", "d", flops=2),
            *_MULTIPLY,
            Pass("x r d q", "x r", flops=6),
            Reduction(1),
        ),
        folded=(
            Pass("d r M", "d", flops=2),
            *_MULTIPLY,
            Pass("x r d q M", "x r", flops=8),
            Reduction(2),
        ),
        applied=(
            Pass("d z", "d", flops=2),
            *_MULTIPLY,
            Pass("x r d q", "x r", flops=6),
            Application(),
            Pass("r z", flops=2),
            Reduction(2),
        ),
        balances=True,
        on_device=True,
        threads=True,
    ),
    RecurrenceMethod(
        name="single-reduction",
        help="one all-reduce per iteration",
        build="fembench.solve.recurrences:SingleReductionCG",
        plain=(Pass("w p s x r", "p s x r", flops=10), Multiplication(dot=True), Reduction(3)),
        folded=(Pass("w p s x r u M", "p s x r u", flops=12), Multiplication(dot=True), Reduction(3)),
        applied=(
            Pass("w p s x r u", "p s x r", flops=10),
            Application(),
            Pass("r u", flops=2),
            Multiplication(dot=True),
            Reduction(3),
        ),
    ),
    RecurrenceMethod(
        name="pipelined",
        help="one all-reduce per iteration, hidden behind product and preconditioner",
        build="fembench.solve.pipelined:PipelinedCG",
        plain=(*_PIPELINED, Pass("n z s p w x r", "z s p w x r", flops=16)),
        folded=(*_PIPELINED, Pass("n z s p w x r M", "z s p w x r m", flops=18, applied=3)),
        applied=(
            Reduction(3, "begin"),
            Application(),
            Multiplication(),
            Reduction(3, "end"),
            Pass("n z s p w x r m q u", "z s p w x r q u", flops=22),
        ),
        replace=50,
        replace_products=4,
        replace_applications=2,
    ),
    RecurrenceMethod(
        name="standard",
        help="two or three all-reduces per iteration",
        solver="petsc",
        build="fembench.solve.petsc:PetscSolver",
        plain=(
            Pass("d r", "d", flops=2),
            *_MULTIPLY,
            Pass("d x", "x", flops=2),
            Pass("q r", "r", flops=2),
            Pass("r r", flops=2),
            Reduction(1),
        ),
        applied=(
            Pass("d z", "d", flops=2),
            *_MULTIPLY,
            Pass("d x", "x", flops=2),
            Pass("q r", "r", flops=2),
            Application(),
            Pass("r z", flops=2),
            Reduction(1),
            Pass("r", flops=2),
            Reduction(1),
        ),
    ),
)
