"""The source's method: a program that is not run, its loops and branches drawn; and what is refused."""

import json

import numpy as np
import pytest
from mpi_program import BEGIN, END, FARM, compiled
from thesis_001 import DATA

from fembench.base.errors import InputError
from fembench.cli.main import main
from fembench.model.engine import simulate
from fembench.model.graph import ExecutionGraph, Receive, Send
from fembench.model.machine import even_machine
from fembench.model.planner import make_plan
from fembench_studies.binaries.executable import Executable, load
from fembench_studies.binaries.given import COSTS, Given, Loops
from fembench_studies.binaries.rehearsal import PHASES
from fembench_studies.binaries.static import events, prices, separator_of, walks

LISTING = (DATA / "seed003_integral_i386.objdump").read_text()
ONE = dict.fromkeys(COSTS, 1e-9)  # a nanosecond per instruction
STATED = Given(loop=Loops(10, 10), bytes=16)


@pytest.fixture(scope="module")
def program():
    return Executable(LISTING, ONE)


@pytest.fixture
def static(tmp_path, output):
    """The JSON of a prediction with --static, given what is stated."""

    def of(path, *words, ranks=2, **given):
        (tmp_path / "given.json").write_text(json.dumps({"costs": ONE} | given))
        stated = ["--given", str(tmp_path / "given.json")]
        options = ["trace", "--binary", str(path), "--ranks", str(ranks), "--static", *stated, *words]
        return json.loads(output(*options, "--json"))

    return of


@pytest.fixture
def refused(tmp_path, refusal):
    """The refusal of the same."""

    def of(path, **given):
        (tmp_path / "given.json").write_text(json.dumps({"costs": ONE} | given))
        words = ["--ranks", "2", "--static", "--given", str(tmp_path / "given.json")]
        return refusal("trace", "--binary", str(path), *words)

    return of


@pytest.mark.row("003:F12")
def test_the_branch_behind_the_rank_leads_to_all_messages(program):
    found = separator_of(program)
    ranked = next(v for v in program.entry.vertices.values() if v.name == "MPI_Comm_rank")
    assert found.address > ranked.start
    messages = [v.start for v in program.entry.vertices.values() if v.kind == "message"]
    assert len(messages) == 4
    assert all(found.address in program.flow(program.entry).controls(address) for address in messages)
    assert not found.master_takes  # if(rank != 0) leads to the slaves


@pytest.mark.row("003:A9")
@pytest.mark.parametrize(("ranks", "messages"), [(2, 2), (4, 6), (8, 14)])
def test_messages_are_those_of_table_4_2(program, ranks, messages):
    price = prices(program, {})
    programs = tuple(events(walk, price) for walk in walks(program, ranks, STATED, 0))
    found = [e for p in programs for e in p]
    assert sum(isinstance(e, Send) for e in found) == messages
    assert sum(isinstance(e, Receive) for e in found) == messages
    on = even_machine(ranks, latency=50e-6, per_byte=8e-9, overhead=1e-6)
    graph = ExecutionGraph(phases=PHASES, programs=programs)
    assert simulate(make_plan(graph, on)).messages.sum() == messages


def test_the_master_goes_round_its_loops_once_a_slave_and_never_computes(program):
    found = walks(program, 8, Given(loop=Loops(20, 20), bytes=16), 0)
    master, slave = found[0].counts(program), found[3].counts(program)
    assert sorted(one.turns for one in master.loops.values()) == [7, 7]
    integral = program.functions["calculateIntegral"]
    (header,) = program.flow(integral).loops
    assert not master.blocks[integral.start]
    assert slave.blocks[integral.start] == 1
    assert (slave.loops[header].turns, slave.loops[header].most) == (20, 20)
    assert slave.blocks[program.functions["root"].start] == 2 + 20
    price = prices(program, {})
    spent = [sum(n * price[a] for a, n in one.blocks.items()) for one in (master, slave)]
    assert spent[1] > 3 * spent[0]


@pytest.mark.row("003:drawn")
def test_iterations_are_drawn_below_the_limit_and_fixed_at_it(program):
    rng = np.random.default_rng(0)
    drawn = [Loops(10, 40).turns(rng) for _ in range(2000)]
    assert max(drawn) == 40
    assert np.mean(drawn) == pytest.approx(10 * (1 - np.exp(-4)), rel=0.05)
    assert Loops(40, 40).turns(rng) == 40
    slaves = walks(program, 200, Given(loop=Loops(10, 40), bytes=16), 0)[1:]
    (header,) = program.flow(program.functions["calculateIntegral"]).loops
    turns = [walk.counts(program).loops[header].turns for walk in slaves]
    assert np.mean(turns) == pytest.approx(9.8, abs=2)
    assert all(walk.drawn for walk in slaves)


@pytest.mark.row("003:F9")
def test_loops_and_branches_go_as_they_are_stated(tmp_path, static):
    body = """
      double x = 2, y; int k;
      for(k = 0; k < 400; k++) if((x += 1e-3) > 2.2) x -= rand();
      MPI_Allreduce(&x, &y, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);"""
    path = compiled(tmp_path, BEGIN + body + END, "-O0")
    program = load(path, ONE)
    (header,) = program.flow(program.entry).loops
    others = [b for b in program.flow(program.entry).loops[header].body if b in program.branches()]
    branch = next(
        b
        for b in others
        if not program.flow(program.entry).exits(
            program.flow(program.entry).loops[header], program.entry.vertices[b]
        )
    )
    seconds = []
    for p in (0, 0.1, 0.9, 1):
        stated = {"calls": {"rand": 1.0}, "bytes": 8, "branches": {f"{branch:x}": p}}
        found = static(path, ranks=1, loops={f"{header:x}": [400, 400]}, **stated)
        seconds.append(found["seconds"])
        assert found["loops"][f"{header:x}"] == [400, 400]
    called = sorted(seconds) if seconds[0] < 200 else sorted(seconds)[::-1]  # either way may lead to the call
    assert seconds == called
    assert sorted(seconds) == pytest.approx([0, 40, 360, 400], abs=20)


def test_what_nobody_states_is_refused_with_how_to_state_it(tmp_path, refused):
    path = compiled(tmp_path, FARM, "-O0")
    told = refused(path, bytes=24)
    assert "its count is not stated; expected --given with" in told
    assert "MPI_Recv at " in refused(path, loop=[9, 20]) or "MPI_Send at " in refused(path, loop=[9, 20])


@pytest.mark.row("003:unk")
def test_an_unknown_call_is_an_error_and_a_stated_cost_is_charged(tmp_path, static, refused):
    body = """
      double x = 0;
      for(int i = 0; i < 1000; i++) x += lrand48();
      MPI_Gather(&x, 1, MPI_DOUBLE, &x, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);"""
    path = compiled(tmp_path, BEGIN + body + END, "-O0")
    told = refused(path, loop=[1000, 1000])
    assert "lrand48 at " in told
    assert 'in main: a call of unknown cost; expected --given with {"calls": {"lrand48": SECONDS}}' in told
    assert "MPI_Gather at " in refused(path, loop=[1000, 1000], calls={"lrand48": 1e-3})
    found = static(path, loop=[1000, 1000], calls={"lrand48": 1e-3, "MPI_Gather": 5})
    assert found["seconds"] == pytest.approx(6, rel=1e-3)
    assert (found["low"], found["high"]) == pytest.approx((found["seconds"] / 8, found["seconds"] * 2))
    assert not found["timed"]


@pytest.mark.row("003:F15d")
def test_drawn_loops_have_an_interval_and_a_remark_at_their_limit(tmp_path, static, output):
    path = compiled(tmp_path, FARM, "-O0")
    found = static(path, "--link", "50e-6,125e6", loop=[9, 20], bytes=24)
    assert found["drawn"]
    assert found["messages"] == [2, 2]
    assert found["low"] < found["seconds"] < found["high"]
    words = ["--ranks", "2", "--static", "--given", str(tmp_path / "given.json")]
    (tmp_path / "given.json").write_text(json.dumps({"costs": ONE, "loop": [20, 20], "bytes": 24}))
    printed = output("trace", "--binary", str(path), *words)
    assert printed.startswith("NOT TIMED: nothing was run\n")
    assert "interval: every count is stated; an eighth to twice the sum over instructions" in printed
    assert "reaches its limit" in printed


def test_a_program_without_a_master_cannot_be_drawn(tmp_path, refused):
    body = """
      int x = 0, right = (rank + 1) % size, left = (rank + size - 1) % size;
      MPI_Sendrecv(&rank, 1, MPI_INT, right, 0, &x, 1,
        MPI_INT, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);"""
    path = compiled(tmp_path, BEGIN + body + END, "-O0")
    assert "no branch separates a master from its slaves" in refused(path, bytes=4)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"costs": {"move": 1e-9}}, "no cost of move memory"),
        ({"calls": {"rand": -1}}, "calls of rand: expected seconds"),
        ({"loops": {"12": [3, 0]}}, "loop 12: expected [MEAN, LIMIT]"),
        ({"branches": {"12": 1.5}}, "branch 12: expected a probability"),
        ({"loop": [9]}, "given.json"),
        ({"brnches": {}}, "branches"),
    ],
)
def test_a_wrong_file_is_refused_with_what_is_wrong(tmp_path, refused, entry, message):
    path = compiled(tmp_path, BEGIN + END)
    assert message in refused(path, **entry)


@pytest.mark.row("003:F6a", "003:F6b")
def test_blocks_and_the_flow_chart_of_a_function_are_written(tmp_path, output):
    path = compiled(tmp_path, FARM, "-O0")
    (tmp_path / "given.json").write_text(json.dumps({"costs": ONE}))
    words = ["trace", "--binary", str(path), "--ranks", "4", "--given", str(tmp_path / "given.json")]
    assert "MPI_Send" in output(*words, "--blocks", "answer")
    assert main([*words, "--blocks", "none"]) == 2
    chart = tmp_path / "main.dot"
    assert main([*words, "--blocks", "main", "--dot", str(chart)]) == 0
    text = chart.read_text()
    assert text.startswith('digraph "main" {')
    assert text.count("MPI_Recv") == 2
    assert 'label="taken"' in text
    assert "color=blue" in text  # back to the head of a loop


def test_what_is_no_program_is_refused_in_one_line(tmp_path, refusal, refused):
    (tmp_path / "a").write_text("no program")
    for words, message in (
        (["--binary", str(tmp_path / "a"), "--ranks", "2"], "expected an x86 executable"),
        (["--binary", str(tmp_path / "a")], "expected a number of ranks"),
        (["--binary", str(tmp_path / "missing"), "--ranks", "2"], "No such file"),
        (["--binary", str(tmp_path), "--ranks", "2"], "Is a directory"),
    ):
        assert message in refusal("trace", *words)
    whole = compiled(tmp_path, BEGIN + END)
    for size in (70, 63):
        (tmp_path / "short").write_bytes(whole.read_bytes()[:size])
        assert f"{tmp_path / 'short'}: " in refused(tmp_path / "short")
    with pytest.raises(InputError, match="no function main"):
        Executable(LISTING.replace("<main>", "<start>"), ONE)
    with pytest.raises(InputError, match="no functions"):
        Executable("", ONE)
    with pytest.raises(InputError, match="expected at least 1"):
        walks(Executable(LISTING, ONE), 0, Given(), 0)
