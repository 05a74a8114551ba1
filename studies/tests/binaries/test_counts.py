"""Counts of programs that are rehearsed: blocks, loops, branches, and those that decide who communicates."""

import json

import pytest
from mpi_program import BEGIN, END, FARM, compiled

from fembench.base.errors import InputError
from fembench_studies.binaries.counts import RankCounts, counts_of, deciding, distributions, uncounted
from fembench_studies.binaries.executable import called, load
from fembench_studies.binaries.expected import Expected
from fembench_studies.binaries.expected_tables import passages, reaching, spans
from fembench_studies.binaries.given import COSTS, Given, Loops
from fembench_studies.binaries.links import Link
from fembench_studies.binaries.rehearsal import count, rehearse

ONE = dict.fromkeys(COSTS, 1e-9)
LINK = Link(1e-6, 5e9)
LEVELS = ("-O0", "-O2")  # other tests compile at -O1
PLAIN = "-fno-tree-vectorize"


def counted(path, ranks, *arguments):
    """(program, [rank] counts) of an executable."""
    program = load(path, ONE)
    found = count(path, program.branches(), arguments, ranks, LINK)
    return program, [counts_of(program, branches) for branches in found]


def passed(program, counts, name):
    """How often a rank calls a function of a library."""
    return sum(n for a, n in counts.blocks.items() if called(program.owner[a].vertices[a]) == name)


@pytest.mark.parametrize("level", LEVELS)
def test_blocks_are_passed_as_often_as_the_arguments_say(tmp_path, level):
    program, counts = counted(compiled(tmp_path, FARM, level, PLAIN), 3, "40")
    assert [passed(program, rank, "MPI_Recv") for rank in counts] == [2, 1, 1]
    assert [passed(program, rank, "MPI_Send") for rank in counts] == [2, 1, 1]  # in a function or inlined
    assert [passed(program, rank, "MPI_Finalize") for rank in counts] == [1, 1, 1]
    assert not any(passed(program, rank, "MPI_Abort") for rank in counts)
    assert sorted(one.turns for one in counts[1].loops.values()) == [40, 40 * 41 / 2]
    assert sorted(one.turns for one in counts[0].loops.values()) == [2, 2]


@pytest.mark.row("003:F10")
@pytest.mark.parametrize("level", LEVELS)
def test_messages_follow_the_rank_behind_a_check_of_arguments_and_in_a_function(tmp_path, level):
    path = compiled(tmp_path, FARM, level)
    program, counts = counted(path, 4, "40")
    found = Expected(program, Given(), [], rehearse(path, ("40",), 4, LINK), counts, None, 4)
    decided = deciding(counts)
    by_name = {}
    for address, each in passages(found).items():
        name = called(program.owner[address].vertices[address])
        by_name.setdefault(name, []).extend(each)
        branches = reaching(found, address, decided)
        in_all = program.owner[address].name == "answer"  # called by the master and by the slaves
        assert branches, "no branch on the rank leads to a message"
        assert in_all or all(decided[b] in ([1, 2, 3], [0]) for b in branches)
        assert {one.m for one in each} == {24}
    assert sorted(one.rank for one in by_name["MPI_Send"]) == [0, 0, 0, 1, 2, 3]
    assert sorted(one.rank for one in by_name["MPI_Recv"]) == [0, 0, 0, 1, 2, 3]


def test_a_branch_on_the_rank_does_not_lead_to_what_all_ranks_reach(tmp_path):
    body = """
      double x = 1, y = 0;
      if(rank == 0) MPI_Send(&x, 1, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD);
      else MPI_Recv(&x, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Allreduce(&x, &y, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
      if(y > 20.0) MPI_Abort(MPI_COMM_WORLD, 3);"""
    path = compiled(tmp_path, BEGIN + body + END)
    program, counts = counted(path, 2)
    found = Expected(program, Given(), [], rehearse(path, (), 2, LINK), counts, None, 2)
    reached = {
        called(program.owner[a].vertices[a]): reaching(found, a, deciding(counts)) for a in passages(found)
    }
    assert reached["MPI_Send"]
    assert reached["MPI_Recv"]
    assert not reached["MPI_Allreduce"]


TRIANGLE = """
  static double table[300]; double all;
  int n = atoi(argv[1]);
  for(int i = 1; i <= n; i++) for(int j = 0; j < i; j++) table[j] += j;
  MPI_Allreduce(table, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
"""


@pytest.mark.row("003:F15d")
@pytest.mark.parametrize("level", LEVELS)
def test_loops_have_a_mean_and_a_longest_execution(tmp_path, level):
    _, counts = counted(compiled(tmp_path, BEGIN + TRIANGLE + END, level, PLAIN), 2, "300")
    for rank in counts:
        assert {(one.entries, one.turns, one.most) for one in rank.loops.values()} == {
            (1, 300, 300),
            (300, 45150, 300),
        }


DRAWN = """
  int often = 0; double x = strtod(argv[1], 0), y = 0;
  for(int k = 0; k < 50; k++){
    double z = x + k * 1e-12;
    while(z > 1.5){ z *= 0.5; y += z; }
    if(y > 40.0) often++;
  }
  MPI_Bcast(&y, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  printf("%g %d\\n", y, often);
"""


@pytest.mark.row("003:F13")
@pytest.mark.parametrize("level", LEVELS)
def test_counts_tell_the_mean_and_the_limit_of_loops_and_the_rate_of_branches(tmp_path, level):
    path = compiled(
        tmp_path, BEGIN + DRAWN + END, level, "-fno-if-conversion", "-fno-if-conversion2", "-fno-unroll-loops"
    )
    loops, rates = distributions(counted(path, 2, "1024")[1])
    # 1024 is halved 10 times; at -O2, the first test may stand before the loop
    assert set(loops.values()) == {Loops(10.0, 10), Loops(50.0, 50)}
    # y exceeds 40 from the first k on
    assert all(rate in (0.0, 1.0) or 0.8 <= rate < 1 or 0 < rate <= 0.2 for rate in rates.values())


POINTER = """
static int one(int k){ return k + 1; }
static int two(int k){ return k + 2; }
int (*const table[2])(int) = { one, two };
"""


def test_what_is_reached_through_a_pointer_is_named(tmp_path):
    body = 'volatile int k = rank; printf("%d\\n", table[k & 1](k));'
    program, counts = counted(compiled(tmp_path, POINTER + BEGIN + body + END, "-O0"), 2)
    assert [program.owner[v.start].name for v in uncounted(program, counts)] == ["main", "one", "two"]
    program, counts = counted(compiled(tmp_path, FARM, "-O0"), 2, "9")
    assert not uncounted(program, counts)


def test_ranks_decide_by_branches_that_each_takes_always_or_never():
    def rank(**branches):
        outcomes = {int(a, 16): type("Passed", (), {"times": times}) for a, times in branches.items()}
        return RankCounts({}, outcomes, {})

    found = deciding([rank(a=[1, 0], b=[1, 0], c=[3, 4]), rank(a=[0, 2], b=[9, 0], c=[0, 1], d=[0, 1])])
    assert found == {10: [1]}


def test_ranks_are_written_as_spans():
    assert spans([3, 0, 1, 2, 7]) == "0-3, 7"
    assert spans([]) == ""


@pytest.mark.row("003:F15b", "003:F15c", "003:Fig4.3", "003:log")
def test_a_prediction_prints_points_loops_functions_calls_and_messages(tmp_path, output, refusal):
    path = compiled(tmp_path, FARM, "-O0")
    words = ["trace", "--binary", str(path), "--ranks", "3", "--args", "20", "--cores", "3"]
    graph, counts = str(tmp_path / "graph.json"), str(tmp_path / "counts.json")
    printed = output(*words, "--link", "50e-6,125e6", "--messages", "-o", graph, "--count", counts)
    assert "predicted time" in printed
    assert "taken by rank" in printed
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in printed.splitlines() if "|" in line]
    assert ["MPI_Send", "answer"] in [row[:2] for row in rows]
    # two messages of 50 µs + 24 B / 125 MB/s
    assert ["0", "2", "48 B", "100 µs"] in [[row[0], *row[3:6]] for row in rows if len(row) == 7]
    assert ["20", "20", "1-2: 20"] in [row[2:5] for row in rows]
    assert ["1", "answer", "1"] in [row[:3] for row in rows]
    log = rows[[row[0] for row in rows].index("from") + 2 :]
    assert [row[:3] for row in log[:2]] == [["0", "1", "24 B"], ["0", "2", "24 B"]]
    assert len(log) == 4
    assert '"messages": [\n  2,' in output("simulate", graph, "--link", "50e-6,125e6", "--json")
    assert "--messages without --link" in refusal(*words, "--messages")
    assert "--level without --blocks" in refusal(*words, "--level", "2")
    # counts of one program are no counts of another
    other = compiled(tmp_path, BEGIN + END, "-O0")
    told = refusal("trace", "--binary", str(other), "--ranks", "2", "--static", "--given", counts)
    assert "counts of another executable" in told
    assert json.loads((tmp_path / "counts.json").read_text())["costs"].keys() == ONE.keys()


def test_a_program_that_cannot_be_rehearsed_is_not_counted(tmp_path):
    path = compiled(tmp_path, BEGIN + "if(rank == 1) exit(3); MPI_Barrier(MPI_COMM_WORLD);" + END)
    with pytest.raises(InputError, match="exit status 3"):
        counted(path, 2)
