"""Execution graphs of compiled programs: that of thesis-003, appendix B, from its disassembly."""

import shutil

import numpy as np
import pytest
from thesis_001 import DATA

from fembench.base.errors import InputError
from fembench.model.engine import simulate
from fembench.model.graph import Receive, Send, flat
from fembench.model.machine import even_machine
from fembench.model.planner import make_plan
from fembench_studies.binaries.binary import Executable, Prices, graph_of, reached_by
from fembench_studies.binaries.block_reduce import reduce_blocks
from fembench_studies.binaries.blocks import Function, Vertex, functions_of, jump_target, split
from fembench_studies.binaries.image import Image
from fembench_studies.binaries.instructions import ROWS, class_of, load_costs, measure_costs, save_costs
from fembench_studies.binaries.walk import Given, Loops

LISTING = (DATA / "seed003_integral_i386.objdump").read_text()
ONE = dict.fromkeys(ROWS, 1e-9)  # a nanosecond per instruction


def executable(entry="main"):
    return Executable(LISTING, ONE, entry, Image(wide=False))


@pytest.fixture(scope="module")
def program():
    return executable()


def priced(program):
    """Costs by instruction."""
    return Prices(program, {})


def computing(program, walk):
    """Seconds of a walk."""
    return sum(priced(program).of(part) for part in walk.parts if isinstance(part, dict))


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
    import re

    from fembench_studies.binaries.blocks import instructions

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
    from fembench_studies.binaries.blocks import instructions

    for name, _, body in instructions(LISTING):
        assert sum(v.cost for v in functions[name].vertices.values()) == pytest.approx(len(body))
    kinds = [v.kind for v in functions["main"].vertices.values()]
    assert kinds.count("message") == 4
    assert kinds.count("return") == 1


@pytest.mark.row("003:F12")
def test_the_branch_behind_the_rank_leads_to_all_messages(program):
    walks = program.walks(3, Given(Loops(10, 10), m=16), 0)
    ranked = next(v for v in program.entry.vertices.values() if v.name == "MPI_Comm_rank")
    (branch,) = walks[0].decisions
    assert program.entry.vertices[branch].start > ranked.start
    assert [walk.decisions[branch] for walk in walks] == [{False}, {True}, {True}]
    for walk in walks:
        assert all(branch in reached_by(program, message.callers) for message in walk.messages)
    assert len({message.address for message in walks[0].messages}) == 2


@pytest.mark.row("003:A9")
@pytest.mark.parametrize(("ranks", "messages"), [(2, 2), (4, 6), (8, 14)])
def test_messages_are_those_of_table_4_2(program, ranks, messages):
    graph = graph_of(program.walks(ranks, Given(Loops(10, 10), m=16), 0), priced(program), "integral")
    events = [e for p in graph.programs for e in flat(p)]
    assert sum(isinstance(e, Send) for e in events) == messages
    assert sum(isinstance(e, Receive) for e in events) == messages
    on = even_machine(ranks, latency=50e-6, per_byte=8e-9, overhead=1e-6)
    assert simulate(make_plan(graph, on)).messages.sum() == messages


def test_the_master_goes_round_its_loops_once_a_slave_and_never_computes(program):
    walks = program.walks(8, Given(Loops(20, 20), m=16), 0)
    master, slave = walks[0], walks[3]
    assert sorted(n for (kind, _), n in master.totals.items() if kind == "turns") == [7, 7]
    assert not [key for key in master.totals if key[0] == "call"]
    assert slave.totals["call", "calculateIntegral"] == 1
    assert slave.totals["turns", inner_loop(program)] == 999  # 1000 sub-intervals
    assert slave.totals["call", "root"] == 2 + 999
    assert computing(program, slave) > 3 * computing(program, master)


def inner_loop(program):
    """The header of the only loop of calculateIntegral."""
    (header,) = program.flow(program.functions["calculateIntegral"]).loops
    return header


def test_merged_blocks_are_fewer_and_keep_their_cost(program):
    merged = executable()
    for function in merged.functions.values():
        reduce_blocks(function, 1)
    count = [sum(len(f.vertices) for f in p.functions.values()) for p in (program, merged)]
    assert count[1] < 0.7 * count[0]
    for name, function in merged.functions.items():
        costs = [sum(v.cost for v in f.vertices.values()) for f in (function, program.functions[name])]
        assert costs[0] == pytest.approx(costs[1], rel=1e-12)


@pytest.mark.row("003:drawn")
def test_iterations_are_drawn_below_the_limit_and_fixed_at_it():
    rng = np.random.default_rng(0)
    drawn = [Loops(10, 40).turns(rng) for _ in range(2000)]
    assert max(drawn) == 40
    assert np.mean(drawn) == pytest.approx(10 * (1 - np.exp(-4)), rel=0.05)
    assert Loops(40, 40).turns(rng) == 40


def test_a_mean_behind_the_limit_is_that_of_the_numbers_drawn():
    rng = np.random.default_rng(0)
    for mean, limit in ((8.5, 9), (3, 9), (50, 1000)):
        drawn = [Loops(mean, limit, cut=True).turns(rng) for _ in range(4000)]
        assert max(drawn) <= limit
        assert np.mean(drawn) == pytest.approx(mean, rel=0.05)


@pytest.mark.row("003:F3")
def test_instructions_have_classes():
    text = "\n".join(
        ["0 <f>:"]
        + [
            f"  {k:x}:\t90 \t{line}"
            for k, line in enumerate(
                [
                    "mov    %eax,%ebx",
                    "mov    -0x8(%ebp),%eax",
                    "push   %ebp",
                    "lea    0x4(%esp),%ecx",
                    "add    $1,%eax",
                    "cmp    %eax,-0x14(%ebp)",
                    "imul   %eax,%ebx",
                    "idivl  -0x4(%ebp)",
                    "fldl   -0x28(%ebp)",
                    "mulsd  %xmm1,%xmm0",
                    "fdivrp %st,%st(1)",
                    "jmp    0 <f>",
                    "ret",
                ]
            )
        ]
    )
    from fembench_studies.binaries.blocks import instructions

    found = [class_of(i) for _, _, body in instructions(text) for i in body]
    assert found == [
        "move",
        "move memory",
        "move memory",
        "move",
        "integer",
        "integer memory",
        "multiply",
        "divide",
        "float memory",
        "float",
        "float divide",
        "jump",
        "call",
    ]


@pytest.mark.skipif(not shutil.which("gcc"), reason="no C compiler")
def test_costs_are_measured_on_this_machine(tmp_path):
    costs = measure_costs()
    assert set(costs) == set(ROWS)
    assert all(1e-12 < c < 1e-6 for c in costs.values())
    assert costs["float divide"] > costs["move"]
    save_costs(costs, tmp_path / "costs.json")
    assert load_costs(tmp_path / "costs.json") == pytest.approx(costs)
    (tmp_path / "costs.json").write_text('{"move": 1e-9}')
    with pytest.raises(InputError, match="no cost of move memory"):
        load_costs(tmp_path / "costs.json")


def test_what_is_no_program_is_refused_in_one_line(tmp_path, refusal):
    (tmp_path / "a").write_text("no program")
    for words, message in (
        (["--binary", str(tmp_path / "a"), "--ranks", "2"], "expected an x86 executable"),
        (["--binary", str(tmp_path / "a")], "expected a number of ranks"),
    ):
        assert message in refusal("trace", *words)
    with pytest.raises(InputError, match="no function start"):
        executable("start")
    with pytest.raises(InputError, match="no functions"):
        Executable("", ONE, "main", Image())
    with pytest.raises(InputError, match="expected at least 1"):
        executable().walks(0, Given(), 0)
