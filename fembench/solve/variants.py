"""All variants of conjugate gradients, by the name that a case gives them.

    standard          two all-reduces an iteration                                     cg.py
    single-reduction  one                                                              single_reduction.py
    pipelined         one, non-blocking, under way during product and preconditioner   pipelined.py

In exact arithmetic all give the same iterates. In the last two the all-reduce of an iteration brings |r_k|
after the product that the next iteration needs, so the last product of a solve is for nothing.
"""

from fembench.solve.cg import ConjugateGradients
from fembench.solve.pipelined import PipelinedCG
from fembench.solve.single_reduction import SingleReductionCG

VARIANTS: dict[str, type[ConjugateGradients] | type[SingleReductionCG] | type[PipelinedCG]] = {
    "standard": ConjugateGradients,
    "single-reduction": SingleReductionCG,
    "pipelined": PipelinedCG,
}
