"""What ranks leave if their job fails."""

import msgspec
import pytest

from fembench.launch.job import ERROR, JOB, RankProgram
from fembench.launch.serve import _serve
from fembench.launch.witness import NO_LINE


class Empty(msgspec.Struct):
    """A job."""


@pytest.mark.mpi
def test_arrays_that_do_not_fit_are_refused_in_one_line(comm, tmp_path):
    def run(comm, job, tell):
        raise MemoryError("Unable to allocate 9 GiB")

    (tmp_path / JOB).write_text("{}")
    assert _serve(RankProgram(Empty, lambda job: comm.size, run), tmp_path, comm, NO_LINE) == 2
    if comm.rank == 0:
        kind, said = (tmp_path / ERROR).read_text().split("\n")
        assert kind == "input"
        assert "(Unable to allocate 9 GiB); expected a smaller mesh, more hosts" in said
