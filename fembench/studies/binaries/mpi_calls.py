"""What calls of MPI and of the C library mean to a walk through a program: events, values and costs.

A call that is not in the tables below needs a stated cost; without one it is an error.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from fembench.model.graph import Collective, Event, Receive, Send, Wait
from fembench.studies.binaries.emulator import Value

if TYPE_CHECKING:
    from fembench.studies.binaries.walker import Walker

MESSAGE = 1  # phase of messages
FREE = ("MPI_Init", "MPI_Init_thread", "MPI_Finalize", "MPI_Comm_rank", "MPI_Comm_size", "MPI_Wtime")
ENDS = ("exit", "_exit", "abort", "MPI_Abort", "__stack_chk_fail", "__assert_fail")
HEARD = 64  # cells of a message whose values the receiver learns
SIZES = {"double": 8, "float": 4, "int": 4, "char": 1, "byte": 1, "long": 8, "unsigned": 4, "long_long": 8}
SIZES |= {"short": 2, "unsigned_long": 8, "unsigned_char": 1, "long_long_int": 8, "signed_char": 1}
SIZES |= {"int64_t": 8, "int32_t": 4, "uint64_t": 8, "uint32_t": 4, "c_bool": 1, "2int": 8}
MPICH, OMPI = 0x4C000000, "ompi_mpi_"
SELF = 0x44000001  # MPI_COMM_SELF of MPICH


class Arguments(NamedTuple):
    """Positions of a call's arguments; -1: it has none."""

    buffer: int = -1
    number: int = -1  # of items
    type: int = -1
    peer: int = -1
    tag: int = -1
    comm: int = -1
    brings: int = -1  # buffer that the call fills


CALLS: Mapping[str, tuple[Arguments, ...]] = {
    "MPI_Send": (Arguments(0, 1, 2, 3, 4, 5),),
    "MPI_Isend": (Arguments(0, 1, 2, 3, 4, 5),),
    "MPI_Recv": (Arguments(0, 1, 2, 3, 4, 5, 0),),
    "MPI_Irecv": (Arguments(0, 1, 2, 3, 4, 5, 0),),
    "MPI_Sendrecv": (Arguments(0, 1, 2, 3, 4, 10), Arguments(5, 6, 7, 8, 9, 10, 5)),
    "MPI_Bcast": (Arguments(0, 1, 2, 3, -1, 4, 0),),
    "MPI_Reduce": (Arguments(0, 2, 3, 5, -1, 6, 1),),
    "MPI_Allreduce": (Arguments(0, 2, 3, -1, -1, 5, 1),),
    "MPI_Allgather": (Arguments(0, 1, 2, -1, -1, 6, 3),),
    "MPI_Barrier": (Arguments(comm=0),),
    "MPI_Wait": (),
    "MPI_Waitall": (),
}
KINDS = {"MPI_Bcast": "bcast", "MPI_Reduce": "reduce", "MPI_Allreduce": "allreduce"}
KINDS |= {"MPI_Allgather": "allgather", "MPI_Barrier": "barrier"}


def known(name: str) -> bool:
    """Whether a call is a communication point."""
    return name in CALLS


def call(walker: "Walker", name: str, address: int) -> list[Event]:
    """Carry out a call of a library, and return its events. Raises InputError."""
    if name == "MPI_Comm_rank":
        walker.give(1, Value(walker.rank, rank=True))
    elif name == "MPI_Comm_size":
        walker.give(1, Value(walker.ranks))
    if name in CALLS:
        return _events(walker, name, address)
    _library(walker, name)
    return []


def _events(walker: "Walker", name: str, address: int) -> list[Event]:
    if not CALLS[name]:
        return [Wait(MESSAGE)]
    events: list[Event] = []
    for arguments in CALLS[name]:
        if not _of_all_ranks(walker, walker.argument(arguments.comm)):
            walker.refuse(name, address, "a communicator of other ranks, or unknown", "MPI_COMM_WORLD")
        m = _bytes(walker, name, address, arguments)
        if name in KINDS:
            root = _number(walker, name, address, arguments.peer, "root") if arguments.peer >= 0 else 0
            events.append(Collective(KINDS[name], m, MESSAGE, root))  # type: ignore[arg-type]
            _share(walker, name, root, arguments, m)
            continue
        tag = _number(walker, name, address, arguments.tag, "tag", any_value=0)
        blocking = not name.startswith("MPI_I")
        if arguments.brings < 0:
            to = _number(walker, name, address, arguments.peer, "destination")
            events.append(Send(to, m, MESSAGE, tag, blocking=blocking))
            walker.heard.setdefault((walker.rank, to, tag), []).append(_cells(walker, arguments.buffer, m))
        else:
            turn = 1 + walker.received % max(walker.ranks - 1, 1) if walker.rank == 0 else 0
            source = _number(walker, name, address, arguments.peer, "source", any_value=turn)
            walker.received += 1
            events.append(Receive(source, m, MESSAGE, tag, blocking=blocking))
            sent = walker.heard.get((source, walker.rank, tag), [])
            _fill(walker, arguments.brings, m, sent.pop(0) if sent else None)
    return events


def _of_all_ranks(walker: "Walker", comm: Value | None) -> bool:
    """Whether a communicator is known, and not MPI_COMM_SELF."""
    return comm is not None and comm.n != SELF and walker.program.image.name(comm.n) != f"{OMPI}comm_self"


def _number(
    walker: "Walker", name: str, address: int, position: int, what: str, any_value: int | None = None
) -> int:
    """A peer or tag; the wildcards of MPI become `any_value`."""
    value = walker.argument(position)
    if value is None:
        walker.refuse(name, address, f"a {what} that is unknown", "one that follows from rank and arguments")
    n = value.n & 0xFFFFFFFF
    n = n - 2**32 if n >> 31 else n
    if n < 0 and any_value is not None:
        return any_value
    if what != "tag" and not 0 <= n < walker.ranks:
        walker.refuse(name, address, f"{what} {n}", f"a rank below {walker.ranks}")
    return n


def _bytes(walker: "Walker", name: str, address: int, arguments: Arguments) -> int:
    if arguments.number < 0:
        return 0
    items, kind = walker.argument(arguments.number), walker.argument(arguments.type)
    size = _size(walker, kind) if kind else None
    if items is not None and size is not None:
        return (items.n & 0x7FFFFFFF) * size
    if walker.given.m is None:
        walker.refuse(name, address, "a message size that is unknown", "--bytes, the size of such messages")
    return walker.given.m


def _size(walker: "Walker", kind: Value) -> int | None:
    """Bytes of a datatype: an object of Open MPI, or a handle of MPICH."""
    name = walker.program.image.name(kind.n)
    if name.startswith(OMPI):
        return SIZES.get(name.removeprefix(OMPI))
    return (kind.n >> 8) & 0xFF if kind.n & 0xFF000000 == MPICH else None


Cells = list[tuple[int, int, Value]]


def _cells(walker: "Walker", position: int, m: int) -> Cells:
    """(offset, width, value) of what is known of a buffer."""
    start, cells = walker.argument(position), walker.state.memory.cells
    if start is None:
        return []
    first = sorted(a for a in cells if start.n <= a < start.n + m)[:HEARD]
    return [(a - start.n, cells[a][0], value) for a in first if (value := cells[a][1]) is not None]


def _fill(walker: "Walker", position: int, m: int, cells: Cells | None) -> None:
    """The buffer at an argument is received: known as far as the sender's was."""
    start = walker.argument(position)
    if start is None:
        return
    walker.forget(start.n, start.n + max(m, 1))
    for offset, width, value in cells or []:
        walker.state.store(start.n + offset, width, value)


def _share(walker: "Walker", name: str, root: int, arguments: Arguments, m: int) -> None:
    """The values of a broadcast become known; the results of other collectives do not."""
    if arguments.brings < 0:
        return
    if name != "MPI_Bcast":
        _fill(walker, arguments.brings, m * (walker.ranks if name == "MPI_Allgather" else 1), None)
        return
    key = ("bcast", root, walker.broadcasts)
    walker.broadcasts += 1
    if walker.rank == root:
        walker.shared[key] = _cells(walker, arguments.buffer, m)
    else:
        _fill(walker, arguments.brings, m, walker.shared.get(key))


def _library(walker: "Walker", name: str) -> None:
    """What a library function returns and writes; `walker` has charged its cost."""
    result: Value | None = Value(0) if name.startswith("MPI_") else None
    if name in ("atoi", "atol", "strtol", "strtoul"):
        result = _parsed(walker)
    elif name in ("malloc", "calloc"):
        a, b = walker.argument(0), walker.argument(1)
        size = a.n * (b.n if b and name == "calloc" else 1) if a else 1 << 20
        result = Value(walker.allocate(size))
    elif name in ("memset", "memcpy", "memmove"):
        start, size_ = walker.argument(0), walker.argument(2)
        if start:
            walker.forget(start.n, start.n + (size_.n if size_ else 1 << 20))
        result = start
    elif name not in FREE and not name.startswith(("printf", "puts", "fprintf", "fwrite", "putchar", "free")):
        for position in range(6 if walker.state.word == 8 else 0):
            pointer = walker.argument(position)
            if pointer and walker.state.memory.cells.get(pointer.n):
                walker.forget(pointer.n, pointer.n + 8)
    walker.returned(result)


def _parsed(walker: "Walker") -> Value | None:
    """The number in the text that the first argument points to."""
    start, text = walker.argument(0), ""
    while start is not None and (one := walker.state.memory.read(start.n + len(text), 1)) and one.n:
        text += chr(one.n)
    try:
        return Value(int(text) & (2**64 - 1))
    except ValueError:
        return None
