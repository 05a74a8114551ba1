"""The integer state of a process: registers and memory, as far as they are known before the program runs.

Follows the values of x86 instructions in AT&T syntax. A value is known, or unknown: what a floating-point
instruction computes, what a message brings and what nobody has written is unknown, and so is all that is
computed from it. Values that depend on the rank are marked. Instructions that are not interpreted make their
last operand unknown.
"""

import re
from functools import lru_cache
from typing import Literal, NamedTuple

from fembench_studies.binaries.blocks import Instruction
from fembench_studies.binaries.image import Image

STACK = 0x70000000  # of the first function
Where = Literal["value", "register", "float", "memory", "other"]


class Value(NamedTuple):
    """An unsigned number, and whether it depends on the rank."""

    n: int
    rank: bool = False


class Operand(NamedTuple):
    """An operand of an instruction."""

    where: Where
    n: int = 0  # value, or displacement
    name: str = ""  # register, or the base of an address
    by: str = ""  # register of the index
    scale: int = 1
    width: int = 0  # bytes of a register
    shift: int = 0  # bits below it


class DecodedStep(NamedTuple):
    """A decoded instruction."""

    name: str
    width: int
    operands: tuple[Operand, ...]


class Flags(NamedTuple):
    """The operands of the last comparison, or a result compared with 0."""

    a: int
    b: int
    bits: int
    rank: bool
    logic: bool = False  # only zero and sign are known


class BranchTest(NamedTuple):
    """A condition x ? y on whole numbers; which numbers depends on the signedness of the comparison."""

    relation: str
    x: int
    y: int
    rank: bool
    drawn: bool = False  # a number of iterations that was drawn, not a comparison of the program

    @property
    def holds(self) -> bool:
        return RELATIONS[self.relation](self.x, self.y)


RELATIONS = {
    "==": lambda x, y: x == y,
    "!=": lambda x, y: x != y,
    "<": lambda x, y: x < y,
    ">=": lambda x, y: x >= y,
    ">": lambda x, y: x > y,
    "<=": lambda x, y: x <= y,
}
SIGNED = {"e": "==", "z": "==", "ne": "!=", "nz": "!=", "l": "<", "nge": "<", "ge": ">=", "nl": ">="}
SIGNED |= {"g": ">", "nle": ">", "le": "<=", "ng": "<="}
UNSIGNED = {"b": "<", "c": "<", "nae": "<", "ae": ">=", "nc": ">=", "nb": ">=", "a": ">", "nbe": ">"}
UNSIGNED |= {"be": "<=", "na": "<="}
SUFFIX = {"b": 1, "w": 2, "l": 4, "q": 8}
BASES = {"mov", "add", "sub", "and", "or", "xor", "cmp", "test", "inc", "dec", "neg", "not", "imul", "mul"}
BASES |= {"adc", "sbb", "idiv", "div", "shl", "sal", "shr", "sar", "lea", "push", "pop"}
EXTEND = re.compile(r"^mov([sz])([bwl])([wlq])$")
MOVES = {"movd": 4, "movss": 4, "movq": 8, "movsd": 8, "movlps": 8, "movlpd": 8}
MOVES |= dict.fromkeys(["movaps", "movups", "movapd", "movupd", "movdqa", "movdqu"], 16)
_NAMES = [("rax", "eax", "ax", "al"), ("rbx", "ebx", "bx", "bl"), ("rcx", "ecx", "cx", "cl")]
_NAMES += [("rdx", "edx", "dx", "dl"), ("rsi", "esi", "si", "sil"), ("rdi", "edi", "di", "dil")]
_NAMES += [("rbp", "ebp", "bp", "bpl"), ("rsp", "esp", "sp", "spl")]
_NAMES += [(f"r{k}", f"r{k}d", f"r{k}w", f"r{k}b") for k in range(8, 16)]
REGISTERS = {n: (row[0], width, 0) for row in _NAMES for n, width in zip(row, (8, 4, 2, 1))}
REGISTERS |= {f"{c}h": (f"r{c}x", 1, 8) for c in "abcd"}
_ADDRESS = re.compile(r"^\*?(-?0x[0-9a-f]+|-?\d+)?(?:\((%\w+)?(?:,(%\w+))?(?:,(\d))?\))?$")


def operand_of(text: str) -> Operand:
    """An operand in AT&T syntax."""
    text = text.strip().removeprefix("*")
    if text.startswith("$"):
        return Operand("value", int(text[1:], 0))
    if text.startswith("%"):
        if text[1:] in REGISTERS:
            name, width, shift = REGISTERS[text[1:]]
            return Operand("register", name=name, width=width, shift=shift)
        return Operand("float", name=text[1:].replace("ymm", "xmm")) if "mm" in text else Operand("other")
    found = _ADDRESS.match(text)
    if not found or ":" in text:
        return Operand("other")
    base, index = ((REGISTERS.get(r[1:], (r[1:],))[0] if r else "") for r in (found[2], found[3]))
    return Operand("memory", int(found[1] or "0", 0), base, index, int(found[4] or 1))


@lru_cache(maxsize=100_000)
def decoded(instruction: Instruction) -> DecodedStep:
    """An instruction with its operands; `width` in bytes, 0: not told."""
    text = re.sub(r"\s*(#.*|<.*)$", "", instruction.operands)
    parts = [word for word in re.split(r",(?![^(]*\))", text) if word]
    operands = tuple(operand_of(word) for word in parts)
    name, width = instruction.mnemonic, max((o.width for o in operands), default=0)
    if name not in BASES and name[:-1] in BASES and name[-1] in SUFFIX and not _floats(operands):
        width, name = SUFFIX[name[-1]], name[:-1]
    if "rip" in [o.name for o in operands]:
        operands = tuple(
            o._replace(n=o.n + instruction.end, name="image") if o.name == "rip" else o for o in operands
        )
    return DecodedStep(name, width, operands)


def _floats(operands: tuple[Operand, ...]) -> bool:
    return any(o.where == "float" for o in operands)


def signed(n: int, bits: int) -> int:
    """The number that the lowest bits stand for in two's complement."""
    n &= (1 << bits) - 1
    return n - (1 << bits) if n >> (bits - 1) else n


class Memory:
    """Cells by address; what nobody has written is what the image contains."""

    def __init__(self, image: Image) -> None:
        self.image = image
        self.cells: dict[int, tuple[int, Value | None]] = {}  # address -> width, value
        self.lost: list[tuple[int, int]] = []  # ranges of addresses with unknown contents

    def read(self, address: int, width: int) -> Value | None:
        cell = self.cells.get(address)
        if cell and cell[0] >= width:
            value = cell[1]
            return value and Value(value.n & ((1 << 8 * width) - 1), value.rank)
        touched = False
        for b in range(address - 15, address + width):
            other = self.cells.get(b)
            if other and b + other[0] > address:
                if b <= address and b + other[0] >= address + width and other[1]:
                    n = other[1].n >> 8 * (address - b)
                    return Value(n & ((1 << 8 * width) - 1), other[1].rank)
                touched = True
        if touched or any(a < address + width and address < b for a, b in self.lost):
            return None
        initial = self.image.read(address, width)
        return None if initial is None else Value(initial)

    def write(self, address: int, width: int, value: Value | None) -> None:
        cell = self.cells.get(address)
        if not cell or cell[0] != width:
            self._cut(address, address + width)
        self.cells[address] = (width, value and Value(value.n & ((1 << 8 * width) - 1), value.rank))

    def _cut(self, start: int, end: int) -> None:
        """Remove a range of addresses from the cells; what they contain beside it stays."""
        for a in range(start - 15, end):
            if a not in self.cells or a + self.cells[a][0] <= start:
                continue
            width, value = self.cells.pop(a)
            for b, w in ((a, start - a), (end, a + width - end)):
                if w > 0:
                    n = value and Value((value.n >> 8 * (b - a)) & ((1 << 8 * w) - 1), value.rank)
                    self.cells[b] = (w, n)

    def forget(self, start: int, end: int) -> None:
        """Make a range of addresses unknown."""
        for address in [a for a, (w, _) in self.cells.items() if a < end and start < a + w]:
            self._cut(max(address, start), min(address + self.cells[address][0], end))
        if start < end and not any(a <= start and end <= b for a, b in self.lost):
            self.lost = [(a, b) for a, b in self.lost if not (start <= a and b <= end)] + [(start, end)]


class State:
    """Registers, memory and flags. `written` collects addresses that are written; its owner empties it."""

    def __init__(self, image: Image) -> None:
        self.memory = Memory(image)
        self.image = image
        self.registers: dict[str, Value | None] = {"rsp": Value(STACK - (8 if image.wide else 0))}
        self.flags: Flags | None = None
        self.floats = False  # whether the flags come from a floating-point comparison
        self.written: dict[int, int] = {}  # address -> width
        self.word = 8 if image.wide else 4

    # ------------------------------------------------------------------------------ operands

    def address(self, o: Operand) -> Value | None:
        if o.where != "memory":
            return None
        n, rank = o.n, False
        if o.name == "image":
            n += self.image.base
        for name, scale in ((o.name if o.name != "image" else "", 1), (o.by, o.scale)):
            if name:
                value = self.registers.get(name)
                if value is None:
                    return None
                n, rank = n + value.n * scale, rank or value.rank
        return Value(n & (2 ** (8 * self.word) - 1), rank)

    def load(self, address: int, width: int) -> Value | None:
        return self.memory.read(address, width)

    def store(self, address: int, width: int, value: Value | None) -> None:
        self.memory.write(address, width, value)
        self.written[address] = max(width, self.written.get(address, 0))

    def get(self, o: Operand, width: int) -> Value | None:
        if o.where == "value":
            return Value(o.n & ((1 << 8 * width) - 1))
        if o.where in ("register", "float"):
            value = self.registers.get(o.name)
            return value and Value((value.n >> o.shift) & ((1 << 8 * width) - 1), value.rank)
        where = self.address(o)
        return None if where is None else self.load(where.n, width)

    def put(self, o: Operand, width: int, value: Value | None) -> None:
        if o.where == "memory":
            where = self.address(o)
            if where is not None:
                self.store(where.n, width, value)
        elif o.where == "float":
            self.registers[o.name] = value
        elif o.where == "register":
            if value is not None and width < 4:
                old = self.registers.get(o.name) or Value(0)
                mask = ((1 << 8 * width) - 1) << o.shift
                value = Value(old.n & ~mask | (value.n << o.shift) & mask, value.rank or old.rank)
            self.registers[o.name] = value

    # ---------------------------------------------------------------------------- instructions

    def run(self, step: DecodedStep) -> None:
        """Execute an instruction that is no jump, call or return."""
        name, width, o = step
        if any(one.where == "float" for one in o):
            self._float(step)
        elif found := EXTEND.match(name):
            small, large = SUFFIX[found[2]], SUFFIX[found[3]]
            value = self.get(o[0], small)
            if value is not None and found[1] == "s":
                value = Value(signed(value.n, 8 * small) & ((1 << 8 * large) - 1), value.rank)
            self.put(o[1], large, value)
        elif name in ("mov", "movabs") and len(o) == 2:
            self.put(o[1], width, self.get(o[0], width))
        elif name == "lea":
            where = self.address(o[0])
            self.put(o[1], width, where and Value(where.n & ((1 << 8 * width) - 1), where.rank))
        elif name == "mul" or (name == "imul" and len(o) == 1):
            self._multiply(width, o[0], name == "imul")
        elif name in ("add", "sub", "and", "or", "xor", "imul", "shl", "sal", "shr", "sar", "cmp", "test"):
            self._binary(name, width, o)
        elif name in ("adc", "sbb"):
            self._carried(name, width, o)
        elif name in ("inc", "dec", "neg", "not"):
            self._unary(name, width, o[0])
        elif name == "xchg":
            first, second = self.get(o[0], width), self.get(o[1], width)
            if o[0] != o[1]:
                self.put(o[0], width, second)
                self.put(o[1], width, first)
        elif name in ("push", "pop"):
            self._stack(name, o[0])
        elif name == "leave":
            self.registers["rsp"] = self.registers.get("rbp")
            self._stack("pop", Operand("register", name="rbp", width=self.word))
        elif name in ("cltq", "cwtl"):
            wide = 8 if name == "cltq" else 4
            self._put_rax(wide, self._rax(wide // 2, signed_=True))
        elif name in ("cltd", "cqto"):
            bits = 32 if name == "cltd" else 64
            value = self._rax(bits // 8, signed_=True)
            sign = value and Value((-1 if value.n < 0 else 0) & ((1 << bits) - 1), value.rank)
            self.registers["rdx"] = sign
        elif name in ("idiv", "div"):
            self._divide(width, o[0], name == "idiv")
        elif name.startswith("set"):
            test = self.test(name[3:])
            self.put(o[0], 1, test and Value(int(test.holds), test.rank))
        elif name.startswith("cmov"):
            self._conditional_move(name[4:], width, o)
        elif not name.startswith(("nop", "endbr", "hlt", "data16")):
            self._unknown(step)

    def _rax(self, width: int, *, signed_: bool) -> Value | None:
        value = self.get(Operand("register", name="rax"), width)
        return value and Value(signed(value.n, 8 * width) if signed_ else value.n, value.rank)

    def _put_rax(self, width: int, value: Value | None) -> None:
        self.registers["rax"] = value and Value(value.n & ((1 << 8 * width) - 1), value.rank)

    def _binary(self, name: str, width: int, o: tuple[Operand, ...]) -> None:
        if len(o) == 1:  # a shift by one
            o = (Operand("value", 1), o[0])
        same = len(o) == 2 and o[0] == o[1] and o[0].where == "register" and name in ("xor", "sub")
        bits = 8 * width
        a = Value(0) if same else self.get(o[1], width)
        shift = name in ("shl", "sal", "shr", "sar")
        b = Value(0) if same else self.get(o[0], 1 if shift else width)
        result: Value | None = None
        if a is not None and b is not None:
            x, y, rank = signed(a.n, bits), b.n, a.rank or b.rank
            by = y & (63 if width == 8 else 31)
            n = {
                "add": x + y,
                "sub": x - y,
                "cmp": x - y,
                "and": x & y,
                "test": x & y,
                "or": x | y,
                "xor": x ^ y,
                "imul": x * signed(y, bits),
                "shl": x << by,
                "sal": x << by,
                "shr": a.n >> by,
                "sar": x >> by,
            }[name]
            result = Value(n & ((1 << bits) - 1), rank)
        self.floats = False
        if result is None or a is None or b is None or name == "imul":
            self.flags = None
        elif name in ("sub", "cmp"):
            self.flags = Flags(a.n, b.n, bits, result.rank)
        else:
            self.flags = Flags(result.n, 0, bits, result.rank, logic=True)
        if name not in ("cmp", "test"):
            self.put(o[-1], width, result)

    def _carried(self, name: str, width: int, o: tuple[Operand, ...]) -> None:
        """Add or subtract with the carry of a comparison."""
        carry, a = self.test("b"), self.get(o[1], width)
        b = a = Value(0) if o[0] == o[1] and name == "sbb" else a
        b = b if o[0] == o[1] else self.get(o[0], width)
        value = None
        if carry is not None and a is not None and b is not None:
            by = b.n + carry.holds
            n = a.n + by if name == "adc" else a.n - by
            value = Value(n & ((1 << 8 * width) - 1), a.rank or b.rank or carry.rank)
        self.flags, self.floats = None, False
        self.put(o[1], width, value)

    def _unary(self, name: str, width: int, o: Operand) -> None:
        value = self.get(o, width)
        bits = 8 * width
        if value is not None:
            n = {"inc": value.n + 1, "dec": value.n - 1, "neg": -value.n, "not": ~value.n}[name]
            value = Value(n & ((1 << bits) - 1), value.rank)
        if name != "not":
            self.floats = False
            self.flags = value and Flags(value.n, 0, bits, value.rank, logic=True)
        self.put(o, width, value)

    def _stack(self, name: str, o: Operand) -> None:
        top = self.registers.get("rsp")
        if name == "push":
            value = self.get(o, self.word)
            if top is not None:
                self.registers["rsp"] = top = Value(top.n - self.word)
                self.store(top.n, self.word, value)
            return
        value = self.load(top.n, self.word) if top is not None else None
        self.registers["rsp"] = top and Value(top.n + self.word)
        self.put(o, self.word, value)

    def _multiply(self, width: int, o: Operand, is_signed: bool) -> None:
        a, b, bits = self._rax(width, signed_=is_signed), self.get(o, width), 8 * width
        self.flags, self.floats = None, False
        for register, shift in (("rax", 0), ("rdx", bits)):
            value = None
            if a is not None and b is not None:
                n = a.n * (signed(b.n, bits) if is_signed else b.n)
                value = Value((n >> shift) & ((1 << bits) - 1), a.rank or b.rank)
            self.registers[register] = value

    def _divide(self, width: int, o: Operand, is_signed: bool) -> None:
        a, b = self._rax(width, signed_=is_signed), self.get(o, width)
        self.flags, self.floats = None, False
        if a is None or b is None or b.n == 0:
            self.registers["rax"] = self.registers["rdx"] = None
            return
        d = signed(b.n, 8 * width) if is_signed else b.n
        quotient = abs(a.n) // abs(d) * (1 if (a.n < 0) == (d < 0) else -1)
        mask, rank = (1 << 8 * width) - 1, a.rank or b.rank
        self.registers["rax"] = Value(quotient & mask, rank)
        self.registers["rdx"] = Value((a.n - quotient * d) & mask, rank)

    def _conditional_move(self, condition: str, width: int, o: tuple[Operand, ...]) -> None:
        test = self.test(condition)
        new, old = self.get(o[0], width), self.get(o[1], width)
        value = None
        if test is not None:
            value = new if test.holds else old
            value = value and Value(value.n, value.rank or test.rank)
        self.put(o[1], width, value)

    def _float(self, step: DecodedStep) -> None:
        name, _, o = step
        if "comi" in name:
            self.flags, self.floats = None, True
        elif name in ("pxor", "xorps", "xorpd") and o[0] == o[1]:
            self.put(o[1], 16, Value(0))
        elif name in MOVES and not (name in ("movsd", "movss") and o[0].where == o[1].where == "float"):
            self.put(o[1], MOVES[name], self.get(o[0], MOVES[name]))
        else:
            self.put(o[-1], o[-1].width or 16, None)

    def _unknown(self, step: DecodedStep) -> None:
        """An instruction that is not interpreted: of the x87, of strings, or a rare one."""
        name, width, o = step
        if name.startswith(("fcomi", "fucomi", "sahf")):
            self.flags, self.floats = None, True
        elif name.startswith(("fst", "fist", "fnst")):
            for one in o[-1:]:
                self.put(one, {"s": 4, "t": 10}.get(name[-1], 8), None)
        elif name.startswith(("stos", "movs")):
            self._string(name)
        elif not name.startswith("f"):
            self.flags, self.floats = None, False
            for one in o[-1:]:
                self.put(one, width or 8, None)
            if name.startswith(("cpuid", "rdtsc", "bsf", "bsr")):
                for register in ("rax", "rcx", "rdx", "rsi", "rdi"):
                    self.registers[register] = None

    def _string(self, name: str) -> None:
        """A repeated string instruction: what it writes becomes unknown."""
        times, to = self.registers.get("rcx"), self.registers.get("rdi")
        length = times.n * SUFFIX.get(name[4:5], 1) if times else 1 << 20
        if to is not None:
            self.memory.forget(to.n, to.n + length)
            self.written[to.n] = max(length, self.written.get(to.n, 0))
        for register in ("rsi", "rdi"):
            value = self.registers.get(register)
            moved = value if times and (register == "rdi" or name.startswith("movs")) else None
            self.registers[register] = moved and Value(moved.n + length, moved.rank)
        self.registers["rcx"] = times and Value(0, times.rank)

    # ------------------------------------------------------------------------------ conditions

    def test(self, condition: str) -> BranchTest | None:
        """A condition of a jump, set or conditional move; None if it is unknown. No number is NaN."""
        if condition in ("p", "np", "pe", "po") and (self.flags is None and self.floats):
            return BranchTest("==" if condition in ("np", "po") else "!=", 0, 0, False)
        f = self.flags
        if f is None:
            return None
        x, y = signed(f.a, f.bits), signed(f.b, f.bits)
        if condition in SIGNED:
            return BranchTest(SIGNED[condition], x, y, f.rank)
        if condition in ("s", "ns"):
            return BranchTest("<" if condition == "s" else ">=", x - y, 0, f.rank)
        if condition in UNSIGNED and not f.logic:
            return BranchTest(UNSIGNED[condition], f.a, f.b, f.rank)
        if condition in ("a", "nbe", "be", "na"):
            return BranchTest("!=" if condition in ("a", "nbe") else "==", f.a, 0, f.rank)
        return None
