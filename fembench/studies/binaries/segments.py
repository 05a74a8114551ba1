"""Measured costs of segments: the instructions that a program executes in a row, timed on this machine.

A segment is assembled once more, many times in a row, and timed with the registers and the memory that the
walk found at its start; jumps lead to the next instruction. Pages that it touches are mapped on demand. After
Chen et al. (2019), *BHive: a benchmark suite and measurement framework for validating x86-64 basic block
performance models*. Unlike a sum over instructions, that contains what overlaps and what waits.
"""

import hashlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from fembench.base.errors import InputError
from fembench.studies.binaries.binary import CodeSegment, Executable
from fembench.studies.binaries.blocks import Instruction
from fembench.studies.binaries.emulator import WHOLE

LENGTH = 300  # instructions in a row
LEAST, MOST = 64, 4000  # executions from the same start
SCRATCH = 0x20000000  # where registers point to whose value is unknown
HARNESS = Path(__file__).with_name("time_segments.c.txt")
_ROUNDED = re.compile(r"(-?0x[0-9a-f]+)\(%rip\)")


def listing(program: Executable, segment: CodeSegment) -> list[Instruction]:
    """The instructions of a segment, without calls of libraries."""
    found: list[Instruction] = []
    for address in segment.trace:
        v = program.owner[address].vertices[address]
        followed = v.kind != "call" or v.target in program.by_start
        if v.kind != "message" and followed and not v.name.startswith("MPI_"):
            found += program.instructions_of(v)
    return found


def assembly(instruction: Instruction, base: int, label: str) -> str:
    """An instruction as text for the assembler; control continues behind it."""
    name, operands = instruction.mnemonic, re.sub(r"\s*(#.*|<.*)$", "", instruction.operands)
    if name.startswith("call"):
        return f"call {label}\n{label}:"
    if name.startswith("ret"):
        return f"lea 8(%rsp), %rsp\njmp {label}\n{label}:"
    if name.startswith("j"):
        return f"{name if not operands.startswith('*') else 'jmp'} {label}\n{label}:"
    if name.startswith(("nop", "endbr", "data16", "hlt")):
        return "nop"
    found = _ROUNDED.search(operands)
    if found:
        place = base + instruction.end + int(found[1], 16)
        operands = operands.replace(found[0], f"{place:#x}")
    prefix = instruction.prefix if instruction.prefix in ("rep", "repz", "repnz", "lock") else ""
    return f"{prefix} {name} {operands}".strip()


def name_of(program: Executable, segment: CodeSegment) -> str:
    """A name for a segment that is the same in every executable with these instructions."""
    text = "\n".join(f"{i.prefix} {i.mnemonic} {i.code.hex()}" for i in listing(program, segment))
    return f"segment {hashlib.sha256(text.encode()).hexdigest()[:16]}"


def measure_segments(
    program: Executable, known: Mapping[str, float], numbers: Sequence[int]
) -> dict[str, float]:
    """name -> seconds of these segments that are not known yet; those that cannot be timed are left out.

    Raises InputError without a compiler.
    """
    compiler = shutil.which("gcc") or shutil.which("cc")
    if not compiler:
        raise InputError("costs of segments need a C compiler; expected gcc, or --costs of another machine")
    todo: dict[str, int] = {}
    for k in numbers:
        segment = program.segments[k]
        name = name_of(program, segment)
        if name not in known and name not in todo and listing(program, segment):
            todo[name] = k
    while todo:
        with tempfile.TemporaryDirectory() as folder:
            lines = Path(folder) / "segments.s"
            text, owners, executions = _assembled(program, todo)
            lines.write_text(text)
            made = subprocess.run(
                [
                    compiler,
                    "-O1",
                    "-o",
                    f"{folder}/run",
                    "-x",
                    "c",
                    str(HARNESS),
                    "-x",
                    "assembler",
                    str(lines),
                ],
                capture_output=True,
                text=True,
                check=False,
            )
            if made.returncode == 0:
                done = subprocess.run([f"{folder}/run"], capture_output=True, text=True, check=False)
                return _times(done.stdout, executions)
            wrong = {owners[int(n)] for n in re.findall(r"segments\.s:(\d+): Error", made.stderr)}
            if not wrong:
                raise InputError(f"segments cannot be assembled: {made.stderr.strip().splitlines()[-1]}")
            todo = {name: k for name, k in todo.items() if name not in wrong}
    return {}


def _times(printed: str, executions: Mapping[str, int]) -> dict[str, float]:
    """name -> seconds of one execution, from what the harness prints."""
    rows = (line.rsplit(" ", 1) for line in printed.splitlines())
    return {name: max(float(t), 0.0) / executions[name] for name, t in rows}


def _assembled(program: Executable, todo: Mapping[str, int]) -> tuple[str, dict[int, str], dict[str, int]]:
    """The source of all segments, line -> segment, and segment -> executions from the same start."""
    lines, table = [".text"], [".data", ".globl fembench_segments", ".balign 8", "fembench_segments:"]
    owners: dict[int, str] = {}
    executions: dict[str, int] = {}
    for name, k in todo.items():
        segment, first = program.segments[k], len(lines)
        body = listing(program, segment)
        copies = max(1, LENGTH // len(body))
        rounds = -(-min(max(program.batch.get(k, 0), LEAST), MOST) // copies)
        executions[name] = copies * rounds
        lines += _function(program, segment, k, copies, body)
        owners |= dict.fromkeys(range(first + 1, len(lines) + 1), name)
        cells = sorted(segment.start.cells.items())
        table += [f".quad run{k}, cells{k}, {len(cells)}, {rounds}, name{k}, 0, 0"]
        lines += [".section .rodata", f'name{k}: .string "{name}"', ".balign 8", f"cells{k}:"]
        lines += [f".quad {a}, {value & (2**64 - 1)}, {min(width, 8)}" for a, (width, value) in cells]
        lines += [".text"]
    table += [".globl fembench_count", f"fembench_count: .long {len(todo)}", FIXED]
    return "\n".join(line for one in (*lines, *table) for line in one.split("\n")) + "\n", owners, executions


FIXED = """.balign 8
saved: .quad 0
left: .quad 0
number: .quad 0x3ff8000000000000
flush: .long 0x9fc0
usual: .long 0x1f80
.section .note.GNU-stack,"",@progbits"""
KEPT = ("rbx", "rbp", "r12", "r13", "r14", "r15")


def _function(
    program: Executable, segment: CodeSegment, k: int, copies: int, body: Sequence[Instruction]
) -> list[str]:
    """The function that executes a segment, one line an element."""
    known = segment.start.registers
    lines = [f"run{k}:", *(f"push %{r}" for r in KEPT), "mov %rsp, saved(%rip)", "ldmxcsr flush(%rip)"]
    lines += ["mov fembench_turns(%rip), %rax", "mov %rax, left(%rip)"]
    lines += [f"movsd number(%rip), %xmm{n}" for n in range(16)]
    lines += [f"movabs ${known.get(r, SCRATCH + 4096 * n)}, %{r}" for n, r in enumerate(WHOLE)]
    lines += ["cmpq $0, left(%rip)", f"je over{k}", f"again{k}:"]
    for copy in range(copies):
        for n, one in enumerate(body):
            text = assembly(one, program.image.base, f"next{k}_{copy}_{n}")
            after = body[(n + 1) % len(body)].address
            if "\nnext" in text and after != one.end:  # the target lies in its cache line as in the program
                jump = f"\njmp next{k}_{copy}_{n}"  # for branches that other data do not take
                place = f"{jump}\n.p2align 6, 0x90\n.fill {after % 64}, 1, 0x90\nnext"
                text = place.join(text.rsplit("\nnext", 1))
            lines += text.split("\n")
    lines += ["subq $1, left(%rip)", f"jnz again{k}", f"over{k}:", "mov saved(%rip), %rsp"]
    return [*lines, "ldmxcsr usual(%rip)", *(f"pop %{r}" for r in reversed(KEPT)), "ret"]
