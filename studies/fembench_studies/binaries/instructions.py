"""Measured costs of instructions on this machine, by class, with and without memory operands.

A small C program runs long sequences of each class, in which every instruction depends on the one before, as
in unoptimised code. The cost is the time of a sequence divided by its length.
"""

import shutil
import subprocess
import tempfile
from pathlib import Path

from fembench.errors import InputError
from fembench_studies.binaries.blocks import Instruction

ROWS = {  # class -> (instructions, their number)
    "move": ("movq %%rax, %%rcx\\n movq %%rcx, %%rax\\n", 2),
    "move memory": ("movq %0, %%rax\\n movq %%rax, %0\\n", 2),
    "integer": ("addq $1, %%rax\\n", 1),
    "integer memory": ("addq $1, %0\\n", 1),
    "multiply": ("imulq $3, %%rax\\n", 1),
    "divide": ("movl $0, %%edx\\n movl $77, %%eax\\n divl %1\\n", 3),
    "float": ("addsd %%xmm1, %%xmm0\\n", 1),
    "float memory": ("addsd %2, %%xmm0\\n movsd %%xmm0, %2\\n", 2),
    "float divide": ("divsd %%xmm1, %%xmm0\\n", 1),
    "jump": ("jmp 1f\\n 1:\\n", 1),
    "call": ("call 1f\\n jmp 2f\\n 1: ret\\n 2:\\n", 3),
}
OPERANDS = '"+m"(q), "+m"(d), "+m"(f) :'
CLOBBERED = '"rax", "rcx", "rdx", "xmm0", "xmm1", "cc"'
LENGTH, TURNS, BEST = 50, 20_000, 5
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


def measure_costs() -> dict[str, float]:
    """class -> seconds. Raises InputError without a C compiler for x86-64."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if not compiler:
        raise InputError(
            "instruction costs need a C compiler; expected gcc, or --given with costs of another machine"
        )
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder) / "costs.c", Path(folder) / "costs"
        source.write_text(_source())
        made = subprocess.run(
            [compiler, "-O1", "-o", str(program), str(source)], capture_output=True, text=True, check=False
        )
        if made.returncode:
            raise InputError(f"instruction costs cannot be measured: {made.stderr.strip().splitlines()[-1]}")
        printed = subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout
    seconds = dict(line.rsplit(" ", 1) for line in printed.splitlines())
    return {name: float(value) for name, value in seconds.items()}


def _source() -> str:
    rows = []
    for name, (row, count) in ROWS.items():
        text = "".join(f'"{row}"' for _ in range(LENGTH))
        body = f"__asm__ volatile({text} : {OPERANDS} : {CLOBBERED});"
        rows.append(
            f"  best = 1e9; for(int k = 0; k < {BEST}; k++){{ double t = now(); "
            f"for(int i = 0; i < {TURNS}; i++){{ {body} }} t = now() - t; if(t < best) best = t; }}\n"
            f'  printf("{name} %.6e\\n", best / {TURNS * LENGTH * count}.0);'
        )
    return (
        "#include <stdio.h>\n#include <time.h>\n"
        "static double now(void){ struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); "
        "return t.tv_sec + 1e-9 * t.tv_nsec; }\n"
        "int main(void){ static long q = 1; static int d = 7; static double f = 1.5; double best;\n"
        '  __asm__ volatile("movsd %0, %%xmm1\\n movsd %0, %%xmm0\\n" :: "m"(f) : "xmm0", "xmm1");\n'
        + "\n".join(rows)
        + "\n  return 0; }\n"
    )
