"""Blocks of a compiled program from its disassembly (Calzeta and de Souza 2008, 3.2.3).

Consecutive computing instructions form one vertex; every jump, call, return and message is a separate one. A
jump into the middle of a vertex splits it, and its cost in proportion to the bytes on both sides.
As in the source, costs of instructions come from a table (assumed.toml); --given states those of another
processor.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from fembench.base.tables import table
from fembench.base.units import seconds
from fembench.errors import InputError

Kind = Literal["execute", "call", "jump", "branch", "return", "message"]
_LINE = re.compile(r"^\s*([0-9a-f]+):\t((?:[0-9a-f]{2} )+)\s*\t?(\S.*)?$")
_HEAD = re.compile(r"^([0-9a-f]+) <([^>]+)>:$")
_MESSAGE = re.compile(r"<(MPI_(?:Send|Recv|Sendrecv))(?:@plt)?>")
_CALLED = re.compile(r"<([^>+]+?)(?:@plt)?>")
PREFIXES = ("bnd", "notrack", "repz", "repnz", "rep", "lock", "data16", "addr32", "cs")
FLOAT: tuple[str, ...] = ("f", "adds", "subs", "muls", "movs", "cvt", "ucomi", "comi", "pxor")  # beginnings
FLOAT += ("xorp", "unpck", "movap", "movd")
MOVES = ("mov", "push", "pop", "lea", "cltq", "cwt", "cqt", "nop", "leave", "xchg", "set", "cmov", "endbr")


class Instruction(NamedTuple):
    """One line of objdump."""

    address: int
    code: bytes
    mnemonic: str
    operands: str
    prefix: str = ""

    @property
    def end(self) -> int:
        return self.address + len(self.code)


@dataclass
class Vertex:
    """A vertex: a block, or a single instruction of another kind."""

    start: int
    end: int
    kind: Kind
    cost: float  # seconds
    target: int | None = None  # of a jump or call; None: unknown
    name: str = ""  # of the function called

    @property
    def backward(self) -> bool:
        """Whether it jumps back, which makes a loop."""
        return self.target is not None and self.target < self.end


@dataclass
class Function:
    """A function of the program."""

    name: str
    start: int
    end: int
    vertices: dict[int, Vertex]  # by address, ascending

    def at(self, address: int) -> Vertex:
        """The vertex that begins at an address. Raises InputError."""
        if address not in self.vertices:
            raise InputError(f"{self.name}: a jump to {address:x}, which is in none of its blocks")
        return self.vertices[address]


def jump_target(address: int, code: bytes) -> int | None:
    """The target of a direct jump or call; None for jumps through registers or memory.

    The displacement is little endian, signed, and relative to the next instruction.
    """
    skip = 0
    while skip < len(code) and code[skip] in (0xF2, 0xF3, 0x2E, 0x3E, 0x66):
        skip += 1
    opcode = code[skip:]
    if not opcode:
        return None
    if opcode[0] == 0xEB or 0x70 <= opcode[0] <= 0x7F or 0xE0 <= opcode[0] <= 0xE3:
        width = 1
    elif opcode[0] in (0xE8, 0xE9) or (opcode[0] == 0x0F and 0x80 <= opcode[1] <= 0x8F):
        width = 4
    else:
        return None
    return address + len(code) + int.from_bytes(code[-width:], "little", signed=True)


def instructions(text: str) -> Iterator[tuple[str, int, list[Instruction]]]:
    """(function, its address, its instructions) in a listing of `objdump -d`."""
    name, start = "", 0
    found: list[Instruction] = []
    for line in text.splitlines():
        head, body = _HEAD.match(line), _LINE.match(line)
        if head:
            if found:
                yield name, start, found
            start, name, found = int(head.group(1), 16), head.group(2), []
        elif body and body.group(3):
            words = body.group(3).split(None, 1)
            prefix = []
            while len(words) == 2 and words[0] in PREFIXES:
                prefix.append(words[0])
                words = words[1].split(None, 1)
            code = bytes.fromhex(body.group(2))
            found.append(
                Instruction(
                    int(body.group(1), 16), code, words[0], (words[1:] or [""])[0].strip(), " ".join(prefix)
                )
            )
        elif body and found:  # a long instruction continues on the next line
            last = found[-1]
            found[-1] = last._replace(code=last.code + bytes.fromhex(body.group(2)))
    if found:
        yield name, start, found


def kind_of(instruction: Instruction) -> Kind:
    """The kind of an instruction (Calzeta and de Souza 2008, 3.2.3)."""
    m = instruction.mnemonic
    if m.startswith("call"):
        return "message" if _MESSAGE.search(instruction.operands) else "call"
    if m.startswith("ret"):
        return "return"
    if m.startswith("jmp"):
        return "jump"
    if m.startswith(("j", "loop")):
        return "branch"
    return "execute"


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


def functions_of(text: str, cost: Callable[[Instruction], float]) -> dict[str, Function]:
    """All functions in a listing of `objdump -d`. Raises InputError if there are none."""
    found = {name: _function(name, start, body, cost) for name, start, body in instructions(text)}
    if not found:
        raise InputError(
            "no functions in the disassembly; expected the output of objdump -d of an executable"
        )
    return found


def _function(
    name: str, start: int, body: list[Instruction], cost: Callable[[Instruction], float]
) -> Function:
    vertices: list[Vertex] = []
    for one in body:
        kind = kind_of(one)
        if kind == "execute" and vertices and vertices[-1].kind == "execute":
            vertices[-1].end = one.end
            vertices[-1].cost += cost(one)
            continue
        target = jump_target(one.address, one.code) if kind != "execute" else None
        called = _CALLED.search(one.operands) if kind in ("call", "message") else None
        vertices.append(
            Vertex(one.address, one.end, kind, cost(one), target, called.group(1) if called else "")
        )
    function = Function(name, start, body[-1].end, {v.start: v for v in vertices})
    for v in vertices:
        if v.kind in ("jump", "branch") and v.target is not None and start <= v.target < function.end:
            split(function, v.target)
    return function


def split(function: Function, address: int) -> None:
    """Split the vertex that contains an address, in place; cost is split by length (Fig. 3.4)."""
    if address in function.vertices:
        return
    around = next(v for v in function.vertices.values() if v.start < address < v.end)
    part = (address - around.start) / (around.end - around.start)
    second = Vertex(address, around.end, "execute", around.cost * (1 - part))
    around.end, around.cost = address, around.cost * part
    function.vertices = dict(sorted({**function.vertices, address: second}.items()))


def successors(function: Function, vertex: Vertex) -> Iterator[int]:
    """Successors inside the function; the instruction after an unconditional jump is not one."""
    if vertex.kind == "return":
        return
    if vertex.kind in ("jump", "branch") and vertex.target in function.vertices:
        yield vertex.target
    if vertex.kind != "jump" and vertex.end in function.vertices:
        yield vertex.end


def block_table(function: Function) -> str:
    """The vertices of a function as text (Calzeta and de Souza 2008, Fig. 3.6b)."""
    rows = [
        [f"{v.start:x}", f"{v.end:x}", v.kind, v.name or None, seconds(v.cost)]
        + [" ".join(f"{after:x}" for after in successors(function, v)) or None]
        for v in function.vertices.values()
    ]
    return table(["from", "to", "type", "calls", "cost", "next"], rows, align="rrllrl")


def flow_chart(function: Function) -> str:
    """The vertices of a function as a flow chart for Graphviz (Calzeta and de Souza 2008, Fig. 3.6b)."""
    shapes = {"branch": "diamond", "message": "parallelogram", "return": "ellipse", "call": "box3d"}
    lines = [f'digraph "{function.name}" {{', "  node [shape=box, fontsize=10];"]
    for v in function.vertices.values():
        text = f"{v.start:x}\\n{v.name or v.kind}\\n{seconds(v.cost)}"
        lines.append(f'  v{v.start:x} [label="{text}", shape={shapes.get(v.kind, "box")}];')
        for after in successors(function, v):
            label = ("taken" if after == v.target else "not taken") if v.kind == "branch" else ""
            style = ", style=bold, color=blue" if after < v.end else ""
            lines.append(f'  v{v.start:x} -> v{after:x} [label="{label}"{style}];')
    return "\n".join([*lines, "}"]) + "\n"
