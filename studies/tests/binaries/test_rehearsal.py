"""Rehearsals of programs compiled with mpicc, and intervals from planted repetitions."""

import numpy as np
import pytest
from mpi_program import BEGIN, END, compiled

from fembench.base.errors import InputError
from fembench.model.graph import Receive, Send, flat
from fembench_studies.binaries.expected import WIDE, Expected, summary
from fembench_studies.binaries.given import Given
from fembench_studies.binaries.links import Link
from fembench_studies.binaries.rehearsal import ROW, Repetition, rehearse

LINK = Link(1e-6, 5e9)
RECEIVE = 1


def rehearsed(folder, source, ranks, *arguments):
    """The first repetition of a program."""
    return rehearse(compiled(folder, source), arguments, ranks, LINK)[0]


CHECKED = """
#define CHECK(x) if(!(x)){ fprintf(stderr, "line %d on rank %d\\n", __LINE__, rank); exit(9); }
int main(int argc, char **argv){
  int rank, size;
  MPI_Init(&argc, &argv); MPI_Comm_rank(MPI_COMM_WORLD, &rank); MPI_Comm_size(MPI_COMM_WORLD, &size);
  int right = (rank + 1) % size, left = (rank + size - 1) % size, n, got = -1, flag = 0;
  double mine = rank + 0.5, all[64], part[64], other = -1;
  MPI_Request requests[3]; MPI_Status status, both[3];
  MPI_Irecv(&got, 1, MPI_INT, left, 3, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(&rank, 1, MPI_INT, right, 3, MPI_COMM_WORLD, &requests[1]);
  requests[2] = MPI_REQUEST_NULL;
  MPI_Waitall(3, requests, both);
  CHECK(got == left && both[0].MPI_SOURCE == left && both[0].MPI_TAG == 3 && requests[0] == MPI_REQUEST_NULL)
  MPI_Sendrecv(&mine, 1, MPI_DOUBLE, right, 1, &other, 1, MPI_DOUBLE, left, 1, MPI_COMM_WORLD, &status);
  CHECK(other == left + 0.5)
  other = -1;
  int none = MPI_PROC_NULL;
  MPI_Sendrecv(&mine, 1, MPI_DOUBLE, none, 1, &other, 1, MPI_DOUBLE, none, 1, MPI_COMM_WORLD, &status);
  CHECK(other == -1 && status.MPI_SOURCE == MPI_PROC_NULL)
  n = rank == size - 1 ? 77 : 0;
  MPI_Bcast(&n, 1, MPI_INT, size - 1, MPI_COMM_WORLD);
  CHECK(n == 77)
  long sum = rank, most = rank, total = -1;
  MPI_Reduce(&sum, &total, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  CHECK(rank || total == size * (size - 1) / 2)
  MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_LONG, MPI_MAX, MPI_COMM_WORLD);
  CHECK(most == size - 1)
  struct { double v; int at; } a = { -rank, rank }, b;
  MPI_Allreduce(&a, &b, 1, MPI_DOUBLE_INT, MPI_MINLOC, MPI_COMM_WORLD);
  CHECK(b.v == 1 - size && b.at == size - 1)
  unsigned char bit = 1 << rank, bits;
  MPI_Allreduce(&bit, &bits, 1, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD);
  CHECK(bits == (1 << size) - 1)
  MPI_Allgather(&mine, 1, MPI_DOUBLE, all, 1, MPI_DOUBLE, MPI_COMM_WORLD);
  for(int r = 0; r < size; r++) CHECK(all[r] == r + 0.5)
  MPI_Gather(&mine, 1, MPI_DOUBLE, part, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  for(int r = 0; rank == 0 && r < size; r++) CHECK(part[r] == r + 0.5)
  MPI_Scatter(part, 1, MPI_DOUBLE, &other, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  CHECK(other == mine)
  MPI_Barrier(MPI_COMM_WORLD);
  if(rank == 0) for(int r = 1; r < size; r++){
    MPI_Recv(part, 64, MPI_DOUBLE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_DOUBLE, &n);
    CHECK(n == status.MPI_SOURCE && status.MPI_TAG == 10 + n && part[0] == n + 0.5)
  }
  else { part[0] = mine; MPI_Send(part, rank, MPI_DOUBLE, 0, 10 + rank, MPI_COMM_WORLD); }
  MPI_Finalize();
  MPI_Finalized(&flag);
  CHECK(flag)
  return 0;
}
"""


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_every_message_brings_what_was_sent(tmp_path, ranks):
    found = rehearsed(tmp_path, CHECKED, ranks)  # the program ends with status 9 where a value is wrong
    events = [e for program in found.graph().programs for e in flat(program)]
    assert sum(isinstance(e, Send) for e in events) == sum(isinstance(e, Receive) for e in events)
    assert found.contention >= 1


ORDER = """
  if(rank){
    volatile double x = 0;
    for(long i = 0; i < 20000000 / (rank == 1 ? 1 : 1000); i++) x += i;
    MPI_Send(&rank, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
  } else for(int r = 1; r < size; r++){
    int who; MPI_Recv(&who, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
"""


def test_a_receive_from_any_source_takes_what_arrives_first_by_the_clocks_of_the_ranks(tmp_path):
    found = rehearsed(tmp_path, BEGIN + ORDER + END, 3)  # rank 1 computes before rank 2, and much longer
    rows = found.rows[0]
    assert rows[rows["kind"] == RECEIVE]["peer"].tolist() == [2, 1]
    computed = [float(one["seconds"].sum()) for one in found.rows]
    assert computed[1] > 10 * computed[2]


RECEIVED = "MPI_Recv(&x, 1, MPI_INT, (rank + 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);"
USAGE = """if(argc < 2){ fprintf(stderr, "usage: a N\\n"); MPI_Abort(MPI_COMM_WORLD, 2); }"""
SHORT = """double x[9]; if(rank) MPI_Send(x, 9, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD);
  else MPI_Recv(x, 1, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);"""
WRONG = {
    f"int x; {RECEIVED}": "all ranks wait for messages",
    "int x = 1, y; MPI_Allreduce(&x, &y, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF);": "communicators other than",
    "MPI_Comm c; MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &c);": "MPI_Comm_split cannot be rehearsed",
    "if(rank == 1) *(volatile int *)8 = 1;": "exit status -11",
    "if(rank == 1) exit(3); MPI_Barrier(MPI_COMM_WORLD);": "rank 1 ended with exit status 3",
    "if(rank == 1) exit(0); MPI_Barrier(MPI_COMM_WORLD);": "rank 1: ends while other ranks wait for it",
    "int x; MPI_Send(&x, 1, MPI_INT, size, 0, MPI_COMM_WORLD);": "a rank that does not exist",
    SHORT: "longer than its buffer",
}


@pytest.fixture(scope="module")
def wrong(tmp_path_factory):
    """A program that does what its argument, the number of one of WRONG, says."""
    bodies = "".join(f"if(atoi(argv[1]) == {k}){{ {body} }}" for k, body in enumerate(WRONG))
    return compiled(tmp_path_factory.mktemp("wrong"), BEGIN + USAGE + bodies + END)


@pytest.mark.parametrize(
    ("argument", "message"), [*enumerate(WRONG.values()), ("", "(usage: a N); expected --args")]
)
def test_what_cannot_be_rehearsed_is_an_error_in_one_line(wrong, argument, message):
    with pytest.raises(InputError) as told:
        rehearse(wrong, (str(argument),) if argument != "" else (), 2, LINK)
    assert message in str(told.value)
    assert "\n" not in str(told.value)


def rows_of(*rows):
    """Rows of one rank: (seconds before it, kind, peer, bytes)."""
    return np.array([(s, 0, m, kind, peer, 0, 1) for s, kind, peer, m in rows], ROW)


def planted(seconds, *, cores, ranks=4, contention=1.0):
    """What is expected of ranks that compute and then end; [repetition] seconds of each rank."""
    repetitions = [Repetition([rows_of((s, 2, 0, 0))] * ranks, contention) for s in seconds]
    return Expected(None, Given(), [], repetitions, [], LINK, cores)


def test_ranks_that_share_cores_take_turns():
    assert planted([1.0] * 3, cores=4).time.value == pytest.approx(1.0, rel=0.05)
    shared = planted([1.0] * 3, cores=2).time
    assert shared.low < 2.0 < shared.high
    assert shared.half < 0.16
    three = planted([1.0] * 3, cores=2, ranks=3).time  # two of them on one core
    assert three.low < 2.0 < three.high


def test_the_interval_spans_repetitions_and_what_ranks_take_from_each_other():
    quiet = planted([1.0] * 3, cores=4).time
    noisy = planted([1.0, 1.1, 1.2], cores=4).time
    beside = planted([1.0] * 3, cores=4, contention=1.3).time
    assert quiet.high < noisy.high < beside.high
    assert quiet.low == pytest.approx(beside.low)
    assert beside.high > 1.3


def test_an_interval_that_is_wide_says_first_why():
    assert planted([1.0] * 3, cores=4).wide() == ""
    torn = planted([1.0, 1.0, 3.0, 3.0, 3.0], cores=4)
    assert torn.time.half > WIDE
    assert summary(torn, "a").startswith("NOT PREDICTED to 20 %: repetitions of the rehearsal differ")
    rows = [rows_of(*[(1e-5, 3, 0, 1 << 16)] * 50)] * 4  # all-reductions
    chatty = Expected(None, Given(), [], [Repetition(rows, 1.0)] * 3, [], LINK, 4)
    assert "cores wait for messages" in chatty.wide()


@pytest.mark.parametrize("status", [0, 1])
def test_a_program_that_ends_before_mpi_init_is_an_error_that_asks_for_arguments(tmp_path, status):
    early = f"int main(int argc, char **argv){{ if(argc != 2) return {status};"
    with pytest.raises(InputError, match=r"before MPI_Init.*expected --args"):
        rehearsed(tmp_path, early + " MPI_Init(&argc, &argv);" + END, 2)
