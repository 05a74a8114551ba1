"""Blocks of a compiled program: that of thesis-003, appendix B, from its disassembly; instructions."""

import re

import pytest
from thesis_001 import DATA

from fembench_studies.binaries.blocks import (
    Function,
    Vertex,
    class_of,
    functions_of,
    instructions,
    jump_target,
    split,
)
from fembench_studies.binaries.given import COSTS

LISTING = (DATA / "seed003_integral_i386.objdump").read_text()


@pytest.mark.row("003:F3")
@pytest.mark.parametrize(
    ("address", "code", "target"),
    [
        (0x80491E6, "7c cb", 0x80491B3),
        (0x804917E, "0f 85 a4 00 00 00", 0x8049228),
        (0x8049259, "e8 17 fe ff ff", 0x8049075),
        (0x1000, "ff d0", None),  # through a register
    ],
)
def test_jumps_count_from_the_next_instruction(address, code, target):
    assert jump_target(address, bytes.fromhex(code)) == target


@pytest.mark.row("003:F1")
def test_decoded_targets_are_those_that_objdump_prints():
    checked = 0
    for _, _, body in instructions(LISTING):
        for i in body:
            shown = re.match(r"([0-9a-f]+) <", i.operands)
            if shown and i.mnemonic.startswith(("j", "call")):
                assert jump_target(i.address, i.code) == int(shown.group(1), 16)
                checked += 1
    assert checked > 15


@pytest.mark.row("003:F4")
def test_a_jump_into_a_block_splits_it_by_length():
    function = Function("f", 0, 10, {0: Vertex(0, 10, "execute", 50.0)})
    split(function, 4)
    assert [(v.start, v.end, v.cost) for v in function.vertices.values()] == [(0, 4, 20.0), (4, 10, 30.0)]


@pytest.mark.row("003:F2", "003:F5")
def test_no_cost_is_lost_in_blocks():
    functions = functions_of(LISTING, lambda i: 1.0)
    for name, _, body in instructions(LISTING):
        assert sum(v.cost for v in functions[name].vertices.values()) == pytest.approx(len(body))
    kinds = [v.kind for v in functions["main"].vertices.values()]
    assert kinds.count("message") == 4
    assert kinds.count("return") == 1


CLASSES = {
    "mov    %eax,%ebx": "move",
    "mov    -0x8(%ebp),%eax": "move memory",
    "push   %ebp": "move memory",
    "lea    0x4(%esp),%ecx": "move",
    "add    $1,%eax": "integer",
    "cmp    %eax,-0x14(%ebp)": "integer memory",
    "imul   %eax,%ebx": "multiply",
    "idivl  -0x4(%ebp)": "divide",
    "fldl   -0x28(%ebp)": "float memory",
    "mulsd  %xmm1,%xmm0": "float",
    "fdivrp %st,%st(1)": "float divide",
    "jmp    0 <f>": "jump",
    "ret": "call",
}


@pytest.mark.row("003:F3")
def test_instructions_have_classes():
    text = "\n".join(["0 <f>:", *(f"  {k:x}:\t90 \t{line}" for k, line in enumerate(CLASSES))])
    assert [class_of(i) for _, _, body in instructions(text) for i in body] == list(CLASSES.values())
    assert set(CLASSES.values()) == set(COSTS)
