"""Walks through programs compiled here: who communicates, how often loops iterate, and what is refused."""

import json
import shutil
import subprocess

import numpy as np
import pytest

from fembench.base.errors import InputError
from fembench.cli.main import main
from fembench.model.graph import Receive, Send
from fembench_studies.binaries.binary import load, reached_by
from fembench_studies.binaries.counting import count_run, distributions, undecided
from fembench_studies.binaries.emulator import RELATIONS, BranchTest, Value
from fembench_studies.binaries.expected_tables import flag, spans
from fembench_studies.binaries.instructions import ROWS
from fembench_studies.binaries.linear import ahead, further
from fembench_studies.binaries.walk import Given, Loops
from fembench_studies.binaries.walker import Walker

pytestmark = pytest.mark.skipif(
    not (shutil.which("gcc") and shutil.which("objdump")), reason="no C compiler or objdump"
)
ONE = dict.fromkeys(ROWS, 1e-9)
LEVELS = ("-O0", "-O1", "-O2")
HEADER = """
#define MPI_COMM_WORLD 0x44000000
#define MPI_COMM_SELF 0x44000001
#define MPI_INT 0x4c000405
#define MPI_DOUBLE 0x4c00080b
#define MPI_SUM 0
#define MPI_STATUS_IGNORE (void *)0
int MPI_Init(int *, char ***); int MPI_Finalize(void); double MPI_Wtime(void);
int MPI_Comm_rank(int, int *); int MPI_Comm_size(int, int *); int MPI_Abort(int, int);
int MPI_Send(const void *, int, int, int, int, int);
int MPI_Recv(void *, int, int, int, int, int, void *);
int MPI_Bcast(void *, int, int, int, int);
int MPI_Allreduce(const void *, void *, int, int, int, int);
int MPI_Gather(const void *, int, int, void *, int, int, int, int);
"""
LIBRARY = """
#include "mpi.h"
int MPI_Init(int *a, char ***b){ return 0; }
int MPI_Finalize(void){ return 0; }
double MPI_Wtime(void){ return 0; }
int MPI_Comm_rank(int c, int *r){ *r = 0; return 0; }
int MPI_Comm_size(int c, int *s){ *s = 1; return 0; }
int MPI_Abort(int c, int e){ return 0; }
int MPI_Send(const void *b, int n, int t, int to, int g, int c){ return 0; }
int MPI_Recv(void *b, int n, int t, int from, int g, int c, void *s){ return 0; }
int MPI_Bcast(void *b, int n, int t, int r, int c){ return 0; }
int MPI_Allreduce(const void *a, void *b, int n, int t, int o, int c){ return 0; }
int MPI_Gather(const void *a, int n, int t, void *b, int m, int u, int r, int c){ return 0; }
"""


def compiled(folder, source, level="-O1", *options):
    """The executable of a source, with a library of MPI for one rank: one for all tests."""
    common = folder.parent / "one-rank-mpi"
    if not common.exists():
        common.mkdir()
        (common / "mpi.h").write_text(HEADER)
        (common / "library.c").write_text(LIBRARY)
        words = ["gcc", "-shared", "-fPIC", "-o", f"{common}/library.so", f"{common}/library.c"]
        subprocess.run(words, check=True, capture_output=True)
    (folder / "a.c").write_text('#include "mpi.h"\n#include <stdio.h>\n#include <stdlib.h>\n' + source)
    linked = [f"{common}/library.so", "-lm", f"-Wl,-rpath,{common}"]
    program = ["gcc", level, *options, f"-I{common}", "-o", f"{folder}/a", f"{folder}/a.c", *linked]
    subprocess.run(program, check=True, capture_output=True)
    return folder / "a"


def walked(path, ranks, *arguments, calls=(), **given):
    """(program, walks) of an executable."""
    program = load(path, ONE, "main")
    costs = dict.fromkeys(("atoi", "strtol", "printf", "__printf_chk", *calls), 0.0)
    return program, program.walks(ranks, Given(calls=costs, arguments=arguments, **given), 0)


FARM = """
static void answer(double *x, int to){ MPI_Send(x, 3, MPI_DOUBLE, to, 7, MPI_COMM_WORLD); }
static double table[64][64];
int main(int argc, char **argv){
  int rank, size, n; double x[3] = {1, 2, 3};
  MPI_Init(&argc, &argv);
  if(argc != 2){ printf("usage: farm N\\n"); MPI_Abort(MPI_COMM_WORLD, 2); }
  n = atoi(argv[1]);
  if(n < 1 || n > 64) return 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if(rank != 0){
    MPI_Recv(x, 3, MPI_DOUBLE, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for(int i = 0; i < n; i++) for(int j = 0; j <= i; j++) table[i][j] += x[0] * j;
    x[0] = table[n - 1][1];
    answer(x, 0);
  } else {
    for(int p = 1; p < size; p++) answer(x, p);
    for(int p = 1; p < size; p++) MPI_Recv(x, 3, MPI_DOUBLE, p, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  MPI_Finalize();
  return 0;
}
"""


@pytest.mark.row("003:F10")
@pytest.mark.parametrize("level", LEVELS)
def test_messages_follow_the_rank_behind_a_check_of_arguments_and_in_a_function(tmp_path, level):
    program, walks = walked(compiled(tmp_path, FARM, level), 4, "40")
    events = [[type(m.event) for m in walk.messages] for walk in walks]
    assert events == [[Send] * 3 + [Receive] * 3] + [[Receive, Send]] * 3
    assert [m.event.to for m in walks[0].messages[:3]] == [1, 2, 3]
    assert [m.event.source for m in walks[0].messages[3:]] == [1, 2, 3]
    assert {(m.event.m, m.event.tag) for walk in walks for m in walk.messages} == {(24, 7)}
    for walk in walks:
        for message in walk.messages:
            branches = reached_by(program, message.callers) & set(walk.decisions)
            assert branches, "no branch on the rank leads to a message"
            assert all(walks[0].decisions[b] != walks[1].decisions[b] for b in branches)


@pytest.mark.row("003:F9")
@pytest.mark.parametrize("level", LEVELS)
def test_triangular_loops_iterate_as_often_as_the_argument_says(tmp_path, level):
    _, walks = walked(compiled(tmp_path, FARM, level, "-fno-tree-vectorize"), 2, "40")
    turns = sorted(n for (kind, _), n in walks[1].totals.items() if kind == "turns")
    assert turns == [40, 40 * 41 / 2]
    assert {flag([point]) for walk in walks for point in walk.loops.values()} == {"known"}
    assert not walks[1].drawn


def test_a_wrong_argument_ends_the_program_where_it_says(tmp_path, refusal):
    path = compiled(tmp_path, FARM)
    words = ["trace", "--binary", str(path), "--ranks", "2", "--static"]
    told = refusal(*words)
    assert "MPI_Abort at " in told
    assert "in main, rank 0: the program ends here; expected --args" in told


@pytest.mark.parametrize("level", LEVELS)
def test_a_branch_on_the_rank_does_not_lead_to_what_all_ranks_reach(tmp_path, level):
    source = """
    int main(int argc, char **argv){
      int rank; double x = 1, y = 0; MPI_Init(&argc, &argv); MPI_Comm_rank(MPI_COMM_WORLD, &rank);
      if(rank == 0) MPI_Send(&x, 1, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD);
      else MPI_Recv(&x, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Allreduce(&x, &y, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
      if(y > 2.0) MPI_Abort(MPI_COMM_WORLD, 3);
      return 0;
    }"""
    path = compiled(tmp_path, source, level)
    program, walks = walked(path, 2)
    first, last = walks[0].messages
    assert reached_by(program, first.callers) & set(walks[0].decisions)
    assert not reached_by(program, last.callers) & set(walks[0].decisions)
    for seed in range(8):  # what would abort the program is never drawn
        assert not any(walk.drawn for walk in program.walks(2, Given(), seed))


SAMPLED = """
static unsigned long state = 88172645463325252ul;
static double uniform(void){ state ^= state << 13; state ^= state >> 7; return (state >> 11) * 0x1p-53; }
int main(int argc, char **argv){
  int rank, size; long inside = 0, n; double all;
  MPI_Init(&argc, &argv); MPI_Comm_rank(MPI_COMM_WORLD, &rank); MPI_Comm_size(MPI_COMM_WORLD, &size);
  n = strtol(argv[1], NULL, 10);
  for(long i = rank; i < n; i += size){
    double x = uniform(), y = uniform();
    if(x * x + y * y < 1.0) inside++;
  }
  double mine = inside;
  MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return 0;
}
"""


@pytest.mark.parametrize("level", LEVELS)
def test_a_drawn_branch_leaves_the_count_of_its_loop_known(tmp_path, level):
    program = load(compiled(tmp_path, SAMPLED, level), ONE, "main")
    given = Given(arguments=("1000000",))
    for walk in [walk for seed in range(4) for walk in program.walks(2, given, seed)]:
        assert walk.drawn or level != "-O0"  # later, the branch is arithmetic
        ((header, point),) = walk.loops.items()
        assert flag([point]) == "known"
        assert walk.totals["turns", header] == 500_000


TRIANGLE = """
static double table[300];
int main(int argc, char **argv){
  int rank, n; double all;
  MPI_Init(&argc, &argv); MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  n = atoi(argv[1]);
  for(int i = 1; i <= n; i++) for(int j = 0; j < i; j++) table[j] += j;
  MPI_Allreduce(table, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return 0;
}
"""


@pytest.mark.row("003:F15d")
@pytest.mark.parametrize("level", LEVELS)
def test_the_longest_execution_of_an_inner_loop_counts_though_it_was_not_walked(tmp_path, level):
    _, walks = walked(compiled(tmp_path, TRIANGLE, level, "-fno-tree-vectorize"), 4, "300")
    for walk in walks:
        spans_of = {(point.least, point.most) for point in walk.loops.values()}
        assert spans_of == {(300, 300), (1, 300)}


EARLY = """
int main(int argc, char **argv){
  if(argc != 2){ printf("usage: early N\\n"); return 0; }
  MPI_Init(&argc, &argv); MPI_Finalize();
  return 0;
}
"""


@pytest.mark.parametrize("status", [0, 1])
@pytest.mark.parametrize("option", ["--static", "--cores=2"])
def test_a_program_that_ends_before_mpi_init_is_an_error_that_asks_for_arguments(
    tmp_path, refusal, option, status
):
    source = EARLY.replace("return 0; }", f"return {status}; }}", 1)
    words = ["trace", "--binary", str(compiled(tmp_path, source)), "--ranks", "2", option]
    told = refusal(*words)
    assert "before MPI_Init" in told
    assert "expected --args" in told


def test_main_starts_with_a_stack_as_the_abi_wants_it(tmp_path):
    program = load(compiled(tmp_path, EARLY), ONE, "main")
    walker = Walker(program, 0, 1, Given(), np.random.default_rng(0), {}, {})
    assert walker.state.registers["rsp"].n % 16 == 8


LONG = """
int main(int argc, char **argv){
  int rank; double s = 0, x = 1;
  MPI_Init(&argc, &argv); MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  long n = atol(argv[1]);
  for(long i = 0; i < n; i++) for(long j = 0; j < n; j++) s += x * j;
  MPI_Allreduce(&s, &x, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  printf("%g\\n", x);
  return 0;
}
"""


@pytest.mark.parametrize("level", LEVELS)
def test_iterations_that_change_linearly_are_added_at_once(tmp_path, level):
    path, costs = compiled(tmp_path, LONG, level), []
    for n in ("1000", "100000", "100001", "100002"):
        _, walks = walked(path, 1, n, calls=("atol",))
        inner = max(n for (kind, _), n in walks[0].totals.items() if kind == "turns")
        assert inner == int(n) ** 2
        costs.append(max(n for (kind, _), n in walks[0].totals.items() if kind == "block"))
    assert costs[1] > 50 * costs[0]
    assert np.diff(costs[1:], 2) == pytest.approx(2, abs=1.5)  # a square


VALUE = """
static int choose(int k){
  switch(k & 7){
    case 0: return 3; case 1: return 14; case 2: return 15; case 3: return 92; case 4: return 65;
    case 5: return 35; case 6: return 89; default: return 79;
  }
}
int main(int argc, char **argv){
  int rank; MPI_Init(&argc, &argv); MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int n = atoi(argv[1]), list[16], k, sum = 0;
  unsigned u = (unsigned)n * 2654435761u;
  long wide = (long)n * 1234567 - 89;
  for(k = 0; k < 16; k++) list[k] = (n / (k + 1)) % 11 - k * 3;
  for(k = 0; k < 16; k++) sum += list[k] < 0 ? -list[k] : list[k] << 1;
  short small = (short)(u >> 13); signed char tiny = (signed char)n;
  int value = sum + (int)(wide % 1000) + (int)(wide / 7 % 13) + (int)(u % 97) + choose(n)
    + small / 3 + (tiny >> 1) + (n > 100 && u > 2000000000u ? 5 : n < -7 || (n & 1) ? 11 : 17)
    + !(n % 3) + (~n & 255) + (n ^ 77) % 19;
  value = (value < 0 ? -value : value) & 4095;
  if(rank) MPI_Send(list, value, MPI_INT, 0, 0, MPI_COMM_WORLD);
  else printf("%d\\n", value);
  return 0;
}
"""


@pytest.mark.parametrize("level", LEVELS)
def test_whole_numbers_are_those_that_the_processor_computes(tmp_path, level):
    path = compiled(tmp_path, VALUE, level, "-fno-tree-vectorize")  # vectors are not followed
    for n in (0, 1, 7, 100, 4711, -5, -12345, 2147483, 65535, 46341):
        printed = subprocess.run([str(path), str(n)], capture_output=True, text=True, check=True).stdout
        _, walks = walked(path, 2, str(n))
        assert walks[1].messages[0].event.m == 4 * int(printed), n


DRAWN = """
int main(int argc, char **argv){
  int rank, often = 0; double x, y = 0; MPI_Init(&argc, &argv); MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  x = strtod(argv[1], 0);
  for(int k = 0; k < 50; k++){
    double z = x + k * 1e-12;
    while(z > 1.5){ z *= 0.5; y += z; }
    if(y > 40.0) often++;
  }
  MPI_Bcast(&y, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  printf("%g %d\\n", y, often);
  return 0;
}
"""


@pytest.mark.row("003:F13")
@pytest.mark.parametrize("level", LEVELS)
def test_a_counting_run_tells_the_mean_and_the_limit_of_loops_and_the_rate_of_branches(tmp_path, level):
    path = compiled(tmp_path, DRAWN, level, "-fno-if-conversion", "-fno-if-conversion2")
    program = load(path, ONE, "main")
    given = Given(calls=dict.fromkeys(("strtod", "printf"), 0.0), arguments=("1024",))
    branches = undecided(program, 1, given)
    profile = count_run(path, branches, f"{path} 1024")
    loops, rates = distributions(program, profile)
    ((header, found),) = loops.items()
    # 1024 is halved 10 times; at -O2, the first test may stand before the loop
    assert found == Loops(10.0, 10, cut=True)
    walks = program.walks(1, Given(each=loops, branches=rates, calls=given.calls, arguments=("1024",)), 0)
    assert walks[0].totals["turns", header] == pytest.approx(500)
    assert flag([walks[0].loops[header]]) == "unknown"
    other = load(compiled(tmp_path, FARM, level), ONE, "main")
    with pytest.raises(InputError, match="counts of another executable"):
        distributions(other, profile)
    # y exceeds 40 from the first k on
    assert all(rate in (0.0, 1.0) or 0.9 <= rate < 1 or 0 < rate <= 0.1 for rate in rates.values())


def test_a_loop_that_the_program_does_not_fix_needs_a_count(tmp_path, output, refusal):
    path = compiled(tmp_path, DRAWN)
    words = ["trace", "--binary", str(path), "--ranks", "2", "--static"]
    told = refusal(*words)
    assert "in main: its count is not fixed; expected --profile, --loop" in told
    header = told.split("--loop ")[1].split("=")[0]
    tree = json.loads(output(*words, "--loop", f"{header}=3,9", "--json"))
    assert tree["loops"][header] == "unknown"
    assert tree["drawn"]
    assert tree["low"] < tree["seconds"] < tree["high"]
    assert "--branch zz=1: expected ADDRESS=P" in refusal(*words, "--loop-limit", "5", "--branch", "zz=1")


BOUNDED = """
int main(int argc, char **argv){
  int rank, k; double x = 2.0; MPI_Init(&argc, &argv); MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  x = strtod(argv[1], 0);
  for(k = 0; k < 60; k++){ x = 0.5 * (x + 2.0 / x); if(x * x - 2.0 < 1e-9) break; }
  MPI_Bcast(&x, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  return 0;
}
"""


@pytest.mark.parametrize("level", LEVELS)
def test_a_loop_with_a_known_end_and_a_break_is_bounded(tmp_path, level):
    path = compiled(tmp_path, BOUNDED, level)
    _, walks = walked(path, 1, "9", calls=("strtod",), loops=Loops(1000, 1000))
    ((header, point),) = walks[0].loops.items()
    assert flag([point]) == "bounded"
    assert walks[0].totals["turns", header] == 60
    _, walks = walked(path, 1, "9", calls=("strtod",), loops=Loops(5, 5))
    assert walks[0].totals["turns", header] == 5


@pytest.mark.row("003:unk")
def test_an_unknown_call_is_an_error_and_a_stated_cost_is_charged(tmp_path, capsys, refusal):
    source = """
    static double helper(double x){ return x * lrand48(); }
    int main(int argc, char **argv){
      int rank; double x = 0; MPI_Init(&argc, &argv); MPI_Comm_rank(MPI_COMM_WORLD, &rank);
      for(int i = 0; i < 1000; i++) x += helper(x);
      MPI_Gather(&x, 1, MPI_DOUBLE, &x, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
      return 0;
    }"""
    path = compiled(tmp_path, source, "-O0")
    words = ["trace", "--binary", str(path), "--ranks", "2", "--json", "--static"]
    told = refusal(*words)
    assert "lrand48 at " in told
    assert "in helper, rank 0: a call of unknown cost; expected --calls lrand48=SECONDS" in told
    assert "MPI_Gather at " in refusal(*words, "--calls", "lrand48=1e-3")
    (tmp_path / "calls.json").write_text('{"lrand48": 1e-3, "MPI_Gather": 5}')
    assert main([*words, "--calls", str(tmp_path / "calls.json")]) == 0
    assert json.loads(capsys.readouterr().out)["seconds"] == pytest.approx(6, rel=1e-3)
    assert main([*words, "--calls", "rand=-1"]) == 2
    assert main([*words, "--calls", "lrand48=1,MPI_Recv=1,MPI_Gather=1"]) == 0  # there is no MPI_Recv
    capsys.readouterr()


def test_an_unknown_peer_is_an_error(tmp_path, refusal):
    source = """
    int main(int argc, char **argv){
      int rank; double x = strtod(argv[1], 0); MPI_Init(&argc, &argv); MPI_Comm_rank(MPI_COMM_WORLD, &rank);
      MPI_Send(&x, 1, MPI_DOUBLE, (int)x, 0, MPI_COMM_WORLD);
      return 0;
    }"""
    words = ["trace", "--binary", str(compiled(tmp_path, source)), "--ranks", "2", "--static"]
    assert "in main, rank 0: a destination that is unknown; expected" in refusal(*words)


def test_a_message_to_the_rank_alone_is_an_error(tmp_path, capsys, refusal):
    source = """
    int main(int argc, char **argv){
      int rank; double x = 1, y; MPI_Init(&argc, &argv); MPI_Comm_rank(MPI_COMM_WORLD, &rank);
      MPI_Allreduce(&x, &y, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_SELF);
      return 0;
    }"""
    words = ["trace", "--binary", str(compiled(tmp_path, source)), "--ranks", "2"]
    assert main([*words, "--static"]) == 2
    told = capsys.readouterr().err
    assert "in main, rank 0: a communicator of other ranks, or unknown; expected MPI_COMM_WORLD" in told
    assert "communicators other than MPI_COMM_WORLD cannot be rehearsed; expected" in refusal(*words)


def test_a_branch_is_taken_as_often_as_stated(tmp_path, capsys):
    source = """
    int main(int argc, char **argv){
      int rank, k; double x = 2; MPI_Init(&argc, &argv); MPI_Comm_rank(MPI_COMM_WORLD, &rank);
      x = strtod(argv[1], 0);
      for(k = 0; k < 400; k++) if((x += 1e-3) > 2.2) x -= rand();
      MPI_Bcast(&x, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
      return 0;
    }"""
    path = compiled(tmp_path, source, "-O0")
    _, walks = walked(path, 1, "2", calls=("strtod", "rand"))
    (branch,) = walks[0].unknown
    words = ["trace", "--binary", str(path), "--ranks", "1", "--args", "2", "--calls", "strtod=0,rand=1"]
    words += ["--costs", str(tmp_path / "costs.json"), "--json", "--static"]
    seconds = []
    for p in (0, 0.1, 0.9, 1):
        assert main([*words, "--branch", f"{branch:x}={p}"]) == 0
        seconds.append(json.loads(capsys.readouterr().out)["seconds"])
    called = sorted(seconds) if seconds[0] < 200 else sorted(seconds)[::-1]  # either way may lead to the call
    assert seconds == called
    assert sorted(seconds) == pytest.approx([0, 40, 360, 400], abs=20)


def test_values_in_messages_of_lower_ranks_are_known(tmp_path):
    source = """
    int main(int argc, char **argv){
      int rank, size, n = 0; double x[100]; MPI_Init(&argc, &argv);
      MPI_Comm_rank(MPI_COMM_WORLD, &rank); MPI_Comm_size(MPI_COMM_WORLD, &size);
      if(rank == 0){
        n = atoi(argv[1]);
        for(int p = 1; p < size; p++) MPI_Send(&n, 1, MPI_INT, p, 0, MPI_COMM_WORLD);
      }
      else MPI_Recv(&n, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      int m = n / 2; MPI_Bcast(&m, 1, MPI_INT, 0, MPI_COMM_WORLD);
      if(rank) MPI_Send(x, n + m, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD);
      else for(int p = 1; p < size; p++)
        MPI_Recv(x, 100, MPI_DOUBLE, p, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      return 0;
    }"""
    for level in LEVELS:
        _, walks = walked(compiled(tmp_path, source, level), 3, "40")
        assert [walk.messages[-1].event.m for walk in walks[1:]] == [8 * 60] * 2


@pytest.mark.parametrize("relation", RELATIONS)
def test_a_test_holds_as_often_as_counting_says(relation):
    for x in range(-6, 7):
        for dx in (-3, -2, 0, 1, 3):
            for y, dy in ((0, 0), (2, 1), (-4, -1)):
                now = BranchTest(relation, x, y, False).holds
                held = 0
                while (
                    held < 50
                    and BranchTest(relation, x + (held + 1) * dx, y + (held + 1) * dy, False).holds == now
                ):
                    held += 1
                found = further(BranchTest(relation, x, y, False), dx, dy)
                assert found == held or (held == 50 and found > 12)


@pytest.mark.parametrize(
    ("values", "width", "after"), [((2, 1, 0), 4, -3), ((1, 0, -1), 8, -4), ((5, 3, 1), 2, -5)]
)
def test_values_that_change_linearly_wrap_at_their_width(values, width, after):
    size = 1 << (8 * width)
    found = ahead(*(Value(n % size) for n in values), 3, width)
    assert found.n == after % size
    assert ahead(Value(1), Value(2), Value(4), 3, width) is None


def test_ranks_are_written_as_spans():
    assert spans([3, 0, 1, 2, 7]) == "0-3, 7"
    assert spans([]) == ""


@pytest.mark.row("003:F15b", "003:F15c", "003:Fig4.3", "003:log")
def test_a_prediction_prints_points_loops_functions_calls_and_messages(tmp_path, output, refusal):
    path = compiled(tmp_path, FARM, "-O0")
    words = ["trace", "--binary", str(path), "--ranks", "3", "--args", "20", "--cores", "3", "--static"]
    words += ["--calls", "atoi=2e-6", "--costs", str(tmp_path / "costs.json")]
    graph = str(tmp_path / "graph.json")
    printed = output(*words, "--link", "50e-6,125e6", "--messages", "-o", graph)
    assert printed.startswith("NOT TIMED: 0% of the computing was timed on this machine\n")
    assert "predicted time" in printed
    assert "interval: every count is known; an eighth to twice the sum over instructions" in printed
    assert "taken by rank 0" in printed
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in printed.splitlines() if "|" in line]
    assert ["MPI_Send", "answer"] in [row[:2] for row in rows]
    # two messages of 50 µs + 24 B / 125 MB/s
    assert ["0", "2", "48 B", "100 µs"] in [[row[0], *row[3:6]] for row in rows if len(row) == 7]
    assert ["known", "20", "20", "20", "1-2: 20"] in [row[2:7] for row in rows]
    assert ["1", "answer", "1"] in [row[:3] for row in rows]
    assert ["atoi", "0-2: 1", "2 µs", "--calls"] in rows
    log = rows[[row[0] for row in rows].index("from") + 2 :]
    assert [row[:3] for row in log[:2]] == [["0", "1", "24 B"], ["0", "2", "24 B"]]
    assert len(log) == 4
    assert '"messages": [\n  2,' in output("simulate", graph, "--link", "50e-6,125e6", "--json")
    assert "--messages without --link" in refusal(*words, "--messages")


@pytest.mark.row("003:F6a", "003:F6b")
def test_blocks_and_the_flow_chart_of_a_function_are_written(tmp_path, output):
    path = compiled(tmp_path, FARM, "-O0")
    words = ["trace", "--binary", str(path), "--ranks", "4", "--costs", str(tmp_path / "c.json")]
    assert "MPI_Send" in output(*words, "--blocks", "answer")
    assert main([*words, "--blocks", "none"]) == 2
    chart = tmp_path / "main.dot"
    assert main([*words, "--blocks", "main", "--dot", str(chart)]) == 0
    text = chart.read_text()
    assert text.startswith('digraph "main" {')
    assert text.count("MPI_Recv") == 2
    assert 'label="taken"' in text
    assert "color=blue" in text  # back to the head of a loop


def test_costs_of_another_machine_are_used_and_nothing_is_measured(tmp_path, monkeypatch, capsys, output):
    path = compiled(tmp_path, LONG, "-O0")
    words = ["trace", "--binary", str(path), "--ranks", "1", "--args", "500", "--json"]
    words += ["--calls", "atol=0,printf=0", "--costs", str(tmp_path / "costs.json"), "--static"]
    first = json.loads(output(*words))
    assert first["timed"] == 0
    assert 250_000 * 5e-11 < first["seconds"] < 250_000 * 2e-7  # iterations; from a fifth of a cycle each
    assert (first["low"], first["high"]) == pytest.approx((first["seconds"] / 8, first["seconds"] * 2))
    monkeypatch.setattr("shutil.which", lambda name: "objdump" if name == "objdump" else None)
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out) == first


def test_a_counting_run_that_does_not_run_the_program_is_refused(tmp_path):
    path = compiled(tmp_path, DRAWN)
    with pytest.raises(InputError, match="did not run"):
        count_run(path, {0x1000}, "true")
    with pytest.raises(InputError, match="exit status 1"):
        count_run(path, set(), "false")
    with pytest.raises(InputError, match="expected a command"):
        count_run(path, set(), "no-such-command-here")


@pytest.mark.parametrize("name", ["missing", ""])
def test_an_executable_that_cannot_be_read_is_refused_in_one_line(tmp_path, refusal, name):
    path = tmp_path / name
    assert f"{path}: {'No such file' if name else 'Is a directory'}" in refusal(
        "trace", "--binary", str(path), "--ranks", "2", "--static"
    )


@pytest.mark.parametrize("cut", [slice(0, 70), slice(0, 63)])
def test_a_cut_executable_is_refused_in_one_line(tmp_path, capsys, cut):
    whole = compiled(tmp_path, "int main(){ MPI_Init(0, 0); return 0; }")
    short = tmp_path / "short"
    short.write_bytes(whole.read_bytes()[cut])
    assert main(["trace", "--binary", str(short), "--ranks", "2", "--static"]) == 2
    assert capsys.readouterr().err.startswith(f"fembench: {short}: ")


def test_sizes_of_segments_that_cannot_be_are_refused_in_one_line(tmp_path, refusal):
    data = bytearray(compiled(tmp_path, "int main(){ MPI_Init(0, 0); return 0; }").read_bytes())
    data[56:58] = b"\xff\xff"  # the number of program headers
    (tmp_path / "damaged").write_bytes(data)
    assert "program headers are damaged" in refusal(
        "trace", "--binary", str(tmp_path / "damaged"), "--ranks", "2", "--static"
    )


def test_the_table_of_loops_has_mean_limit_and_range_of_known_counts(tmp_path, capsys):
    words = ["trace", "--binary", str(compiled(tmp_path, TRIANGLE, "-O0")), "--args", "300", "--ranks", "4"]
    assert main([*words, "--static"]) == 0
    rows = [[cell.strip() for cell in row.split("|")[3:8]] for row in capsys.readouterr().out.splitlines()]
    assert ["known", "150", "300", "1 to 300", "0-3: 45150"] in rows
    assert ["known", "300", "300", "300", "0-3: 300"] in rows
