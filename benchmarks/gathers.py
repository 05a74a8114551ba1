"""What arrives at one rank during the set-up of a box, by function: what grows with the number of ranks.

mpiexec -n 16 python benchmarks/gathers.py
"""

import pickle
import traceback
from collections import Counter

from mpi4py import MPI

from fembench.base.tables import table
from fembench.bench.prepare import prepare
from fembench.records.case import Case
from fembench.timing.tracer import NullTracer

ARRIVED: Counter[str] = Counter()  # bytes


class Counting(MPI.Intracomm):
    """A communicator that counts what objects arrive at rank 0, by the function that asks for them."""

    def gather(self, sendobj, root=0):
        return self._counted(super().gather(sendobj, root))

    def allgather(self, sendobj):
        return self._counted(super().allgather(sendobj))

    def _counted(self, objects):
        if self.rank == 0 and objects is not None:
            callers = [f for f in traceback.extract_stack() if "fembench" in f.filename and f.name[0] != "<"]
            caller = [
                f.name for f in callers if f.name not in ("together", "_counted", "allgather", "gather")
            ][-1]
            ARRIVED[caller] += sum(len(pickle.dumps(each)) for each in objects)
        return objects


def main() -> None:
    comm = Counting(MPI.COMM_WORLD)
    case = Case.of(mesh="s", ranks=comm.size, partitioner="blocks", problem="corner-load")
    prepare(comm, case, NullTracer())
    if comm.rank == 0:
        rows = [[name, n, n / comm.size] for name, n in ARRIVED.most_common()]
        print(table([f"on {comm.size} ranks, asked for by", "bytes", "per rank"], rows, digits=3))


if __name__ == "__main__":
    main()
