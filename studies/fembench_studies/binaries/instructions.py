"""Costs of instructions by class, with and without memory operands.

As in the source, they come from a table. Each is the time of an instruction that waits for the one before it,
as in unoptimised code, measured once on an AMD EPYC; --given states those of another processor.
"""

from collections.abc import Mapping

from fembench_studies.binaries.blocks import Instruction

COSTS: Mapping[str, float] = {  # class -> seconds
    "move": 0.05e-9,
    "move memory": 1.0e-9,
    "integer": 0.3e-9,
    "integer memory": 2.0e-9,
    "multiply": 1.0e-9,
    "divide": 0.6e-9,
    "float": 1.0e-9,
    "float memory": 2.0e-9,
    "float divide": 4.4e-9,
    "jump": 2.4e-9,
    "call": 0.6e-9,
}
FLOAT = (
    "f",
    "adds",
    "subs",
    "muls",
    "movs",
    "cvt",
    "ucomi",
    "comi",
    "pxor",
    "xorp",
    "unpck",
    "movap",
    "movd",
)
MOVES = ("mov", "push", "pop", "lea", "cltq", "cwt", "cqt", "nop", "leave", "xchg", "set", "cmov", "endbr")


def class_of(instruction: Instruction) -> str:
    """The class of an instruction."""
    m, memory = instruction.mnemonic, "(" in instruction.operands
    if m.startswith(("fdiv", "divs", "fsqrt", "sqrts", "divp")):
        return "float divide"
    if m.startswith(("div", "idiv")):
        return "divide"
    if m.startswith(("mul", "imul")) and not m.startswith(("mulsd", "mulss", "mulp")):
        return "multiply"
    if m.startswith(("call", "ret")):
        return "call"
    if m.startswith(("j", "loop")):
        return "jump"
    if m.startswith(FLOAT) and not m.startswith(("movsb", "movsl", "movsw", "movsx")):
        return "float memory" if memory else "float"
    moves = m.startswith(MOVES)
    memory |= m.startswith(("push", "pop"))
    if m.startswith("lea"):
        memory = False
    return ("move" if moves else "integer") + (" memory" if memory else "")
