"""Execution graphs of compiled programs: that of thesis-003, appendix B, from its disassembly."""

import shutil
import subprocess

import numpy as np
import pytest
from thesis_001 import DATA

from fembench.base.errors import InputError
from fembench.cli.main import main
from fembench.model.engine import simulate
from fembench.model.graph import Receive, Send, flat
from fembench.model.machine import even_machine
from fembench.model.planner import make_plan
from fembench.studies.binaries.binary import Loops, graph_of_program, program_of
from fembench.studies.binaries.blocks import Function, Vertex, functions_of, jump_target, split
from fembench.studies.binaries.instructions import ROWS, class_of, load_costs, measure_costs, save_costs

LISTING = (DATA / "seed003_integral_i386.objdump").read_text()
ONE = dict.fromkeys(ROWS, 1e-9)  # a nanosecond per instruction


@pytest.fixture(scope="module")
def program():
    return program_of(LISTING, ONE, "main")


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


def test_decoded_targets_are_those_that_objdump_prints():
    import re

    from fembench.studies.binaries.blocks import instructions

    checked = 0
    for _, _, body in instructions(LISTING):
        for i in body:
            shown = re.match(r"([0-9a-f]+) <", i.operands)
            if shown and i.mnemonic.startswith(("j", "call")):
                assert jump_target(i.address, i.code) == int(shown.group(1), 16)
                checked += 1
    assert checked > 15


def test_a_jump_into_a_block_splits_it_by_length():
    function = Function("f", 0, 10, {0: Vertex(0, 10, "execute", 50.0)})
    split(function, 4)
    assert [(v.start, v.end, v.cost) for v in function.vertices.values()] == [(0, 4, 20.0), (4, 10, 30.0)]


def test_no_cost_is_lost_in_blocks():
    functions = functions_of(LISTING, lambda i: 1.0)
    from fembench.studies.binaries.blocks import instructions

    for name, _, body in instructions(LISTING):
        assert sum(v.cost for v in functions[name].vertices.values()) == pytest.approx(len(body))
    kinds = [v.kind for v in functions["main"].vertices.values()]
    assert kinds.count("message") == 4
    assert kinds.count("return") == 1


def test_the_separator_is_the_decision_behind_the_rank(program):
    found = program.entry.vertices[program.separator]
    assert found.kind == "branch"
    assert not found.backward
    ranked = next(v for v in program.entry.vertices.values() if v.name == "MPI_Comm_rank")
    assert found.start > ranked.start
    assert len(program.master) == 2


@pytest.mark.parametrize(("ranks", "messages"), [(2, 2), (4, 6), (8, 14)])
def test_messages_are_those_of_table_4_2(program, ranks, messages):
    graph = graph_of_program(program, ranks, Loops(10, 10), 16, 0, "integral")
    events = [e for p in graph.programs for e in flat(p)]
    assert sum(isinstance(e, Send) for e in events) == messages
    assert sum(isinstance(e, Receive) for e in events) == messages
    on = even_machine(ranks, latency=50e-6, per_byte=8e-9, overhead=1e-6)
    assert simulate(make_plan(graph, on)).messages.sum() == messages


def test_the_master_goes_round_its_loops_once_a_slave_and_never_computes(program):
    rng = np.random.default_rng(0)
    master = program.walk(0, 8, Loops(20, 20), rng, 16)
    slave = program.walk(3, 8, Loops(20, 20), rng, 16)
    assert sorted(master.turns.values()) == [7, 7]
    assert master.calls == {}
    assert slave.calls["calculateIntegral"] == 1
    assert slave.calls["root"] == 2 + 20
    assert slave.seconds > 3 * master.seconds


def test_identical_iterations_are_added_at_once():
    root = program_of(LISTING, ONE, "root")
    costs = [root.walk(1, 2, Loops(n, n), np.random.default_rng(0), 16).seconds for n in (5, 6, 7, 10**9)]
    assert np.diff(costs[:3], 2) == pytest.approx(0, abs=1e-15)
    assert costs[3] == pytest.approx(costs[0] + (10**9 - 5) * (costs[1] - costs[0]))


def test_merged_blocks_are_fewer_and_every_way_takes_the_same_time(program):
    merged = program_of(LISTING, ONE, "main", level=1)
    count = [sum(len(f.vertices) for f in p.functions.values()) for p in (program, merged)]
    assert count[1] < 0.7 * count[0]
    for rank in (0, 1, 2):
        found = [p.walk(rank, 3, Loops(5, 30), np.random.default_rng(7), 16) for p in (program, merged)]
        assert found[0].seconds == pytest.approx(found[1].seconds, rel=1e-12)
        assert [type(e) for e in found[0].events] == [type(e) for e in found[1].events]
    assert len(merged.master) == 2


def test_iterations_are_drawn_below_the_limit_and_fixed_at_it(program):
    rng = np.random.default_rng(0)
    drawn = [Loops(10, 40).turns(rng) for _ in range(2000)]
    assert max(drawn) == 40
    assert np.mean(drawn) == pytest.approx(10 * (1 - np.exp(-4)), rel=0.05)
    assert Loops(40, 40).turns(rng) == 40
    times = {program.walk(1, 2, Loops(10, 40), np.random.default_rng(s), 16).seconds for s in range(5)}
    assert len(times) > 1


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
    from fembench.studies.binaries.blocks import instructions

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


SOURCE = """
int MPI_Comm_rank(int comm, int *r){ *r = 0; return 0; }
int MPI_Send(void *b, int to){ return 0; }
int MPI_Recv(void *b, int from){ return 0; }
int work(int n){ int s = 0; for(int i = 0; i < n; i++) s += i * n; return s; }
int main(void){
  int rank, size = 4, x = 0; MPI_Comm_rank(0, &rank);
  if(rank == 0){
    for(int i = 1; i < size; i++) MPI_Send(&x, i);
    for(int i = 1; i < size; i++) MPI_Recv(&x, i);
  }
  else { MPI_Recv(&x, 0); x = work(x); MPI_Send(&x, 0); }
  return 0; }
"""


@pytest.mark.skipif(not (shutil.which("gcc") and shutil.which("objdump")), reason="no C compiler or objdump")
def test_a_program_compiled_here_becomes_a_graph_that_is_simulated(tmp_path, capsys):
    (tmp_path / "a.c").write_text(SOURCE)
    command = ["gcc", "-O0", "-fcf-protection=none", "-o", str(tmp_path / "a"), str(tmp_path / "a.c")]
    subprocess.run(command, check=True, capture_output=True)
    graph = str(tmp_path / "graph.json")
    words = ["trace", "--binary", str(tmp_path / "a"), "--ranks", "4", "--costs", str(tmp_path / "c.json")]
    assert main([*words, "--blocks", "main"]) == 0
    assert "MPI_Send" in capsys.readouterr().out
    assert main([*words, "--blocks", "none"]) == 2
    assert main([*words, "-o", graph, "--loop-mean", "1000", "--loop-limit", "1000"]) == 0
    assert main(["simulate", graph, "--link", "50e-6,125e6", "--json"]) == 0
    assert '"messages": [\n  3,' in capsys.readouterr().out


def test_what_is_no_program_is_refused_in_one_line(tmp_path, capsys):
    (tmp_path / "a").write_text("no program")
    for words, message in (
        (["--binary", str(tmp_path / "a"), "--ranks", "2"], "file format not recognized"),
        (["--binary", str(tmp_path / "a")], "expected a number of ranks"),
    ):
        assert main(["trace", *words]) == 2
        told = capsys.readouterr().err
        assert message in told
        assert told.count("\n") == 1
    with pytest.raises(InputError, match="no function start"):
        program_of(LISTING, ONE, "start")
    with pytest.raises(InputError, match="no functions"):
        program_of("", ONE, "main")
    with pytest.raises(InputError, match="positive numbers"):
        graph_of_program(program_of(LISTING, ONE, "main"), 2, Loops(0, 5), 8, 0, "")
