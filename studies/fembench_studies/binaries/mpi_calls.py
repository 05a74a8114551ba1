"""What calls of MPI and of the C library mean to a walk through a program: events, values and costs.

A call that is not in the tables below needs a stated cost; without one it is an error.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from fembench.model.graph import Collective, Event, Receive, Send, Wait
from fembench_studies.binaries.emulator import Value

if TYPE_CHECKING:
    from fembench_studies.binaries.walker import Walker

PHASES = ("compute", "message")
COMPUTE, MESSAGE = 0, 1
BEGINS = {"MPI_Init", "MPI_Init_thread"}
FREE = (*BEGINS, "MPI_Finalize", "MPI_Comm_rank", "MPI_Comm_size", "MPI_Wtime", "MPI_Wtick")
COMMON: Mapping[str, float] = {  # functions of the C library -> seconds, roughly: --static counts with them
    **dict.fromkeys(
        ("atoi", "atol", "atof", "strtol", "strtoul", "strtod", "getenv", "strcmp", "strlen"), 1e-7
    ),
    **dict.fromkeys(
        ("rand", "random", "drand48", "rand_r", "srand", "srandom", "srand48", "abs", "labs"), 1e-8
    ),
    **dict.fromkeys(("sqrt", "fabs", "floor", "ceil", "fmax", "fmin", "round", "log2", "exp2"), 5e-9),
    **dict.fromkeys(
        ("sin", "cos", "tan", "exp", "log", "pow", "atan", "atan2", "hypot", "fmod", "cbrt"), 2e-8
    ),
    **dict.fromkeys(("malloc", "calloc", "realloc", "free", "memset", "memcpy", "memmove", "strcpy"), 2e-7),
    **dict.fromkeys(("printf", "fprintf", "puts", "putchar", "fputs", "fputc", "fwrite", "fflush"), 1e-6),
    **dict.fromkeys(("__printf_chk", "__fprintf_chk", "sprintf", "snprintf", "putc", "perror"), 1e-6),
    **dict.fromkeys(("clock", "time", "gettimeofday", "clock_gettime"), 1e-7),
}
ENDS = ("exit", "_exit", "abort", "MPI_Abort", "__stack_chk_fail", "__assert_fail")
HEARD = 64  # cells of a message whose values the receiver learns
SIZES = {"double": 8, "float": 4, "int": 4, "char": 1, "byte": 1, "long": 8, "unsigned": 4, "long_long": 8}
SIZES |= {"short": 2, "unsigned_long": 8, "unsigned_char": 1, "long_long_int": 8, "signed_char": 1}
SIZES |= {"int64_t": 8, "int32_t": 4, "uint64_t": 8, "uint32_t": 4, "c_bool": 1, "2int": 8}
ANY = -1  # any source, any tag
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
    status: int = -1


CALLS: Mapping[str, tuple[Arguments, ...]] = {
    "MPI_Send": (Arguments(0, 1, 2, 3, 4, 5),),
    "MPI_Isend": (Arguments(0, 1, 2, 3, 4, 5),),
    "MPI_Recv": (Arguments(0, 1, 2, 3, 4, 5, 0, 6),),
    "MPI_Irecv": (Arguments(0, 1, 2, 3, 4, 5, 0),),
    "MPI_Sendrecv": (Arguments(0, 1, 2, 3, 4, 10), Arguments(5, 6, 7, 8, 9, 10, 5, 11)),
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


def costs(name: str) -> bool:
    """Whether nobody has to state the cost of a call."""
    return name in CALLS or name in FREE or name in COMMON


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
            root = (_number(walker, name, address, arguments.peer, "root") or 0) if arguments.peer >= 0 else 0
            events.append(Collective(KINDS[name], m, MESSAGE, root))  # type: ignore[arg-type]
            _share(walker, name, root, arguments, m)
        elif arguments.brings < 0:
            events += _sent(walker, name, address, arguments, m)
        else:
            events += _received(walker, name, address, arguments, m)
    return events


def _sent(walker: "Walker", name: str, address: int, arguments: Arguments, m: int) -> list[Event]:
    """A send; none to MPI_PROC_NULL."""
    to = _number(walker, name, address, arguments.peer, "destination")
    if to is None:
        return []
    tag = _number(walker, name, address, arguments.tag, "tag") or 0
    walker.heard.setdefault((walker.rank, to), []).append((tag, _cells(walker, arguments.buffer, m)))
    return [Send(to, m, MESSAGE, tag, blocking=not name.startswith("MPI_I"))]


def _received(walker: "Walker", name: str, address: int, arguments: Arguments, m: int) -> list[Event]:
    """A receive; none from MPI_PROC_NULL."""
    source = _number(walker, name, address, arguments.peer, "source")
    if source is None:
        return []
    if source == ANY:
        source = 1 + walker.received % max(walker.ranks - 1, 1) if walker.rank == 0 else 0
    tag = _number(walker, name, address, arguments.tag, "tag") or 0
    walker.received += 1
    sent = walker.heard.get((source, walker.rank), [])
    found = next((one for one in sent if tag in (ANY, one[0])), (max(tag, 0), None))
    if found[1] is not None:
        sent.remove(found)
    _fill(walker, arguments.brings, m, found[1])
    _tell(walker, arguments.status, source, found[0])
    return [Receive(source, m, MESSAGE, found[0], blocking=not name.startswith("MPI_I"))]


def _tell(walker: "Walker", position: int, source: int, tag: int) -> None:
    """Write the source and the tag of a message into its status."""
    status = walker.argument(position) if position >= 0 else None
    if status is not None and status.n > 1 and walker.program.image.parts:
        first = status.n + (0 if walker.program.image.open_mpi else 8)
        walker.state.store(first, 4, Value(source))
        walker.state.store(first + 4, 4, Value(tag))


def _of_all_ranks(walker: "Walker", comm: Value | None) -> bool:
    """Whether a communicator is known, and not MPI_COMM_SELF."""
    return comm is not None and comm.n != SELF and walker.program.image.name(comm.n) != f"{OMPI}comm_self"


def _number(walker: "Walker", name: str, address: int, position: int, what: str) -> int | None:
    """A peer or tag; ANY for both wildcards of MPI, None for MPI_PROC_NULL."""
    value = walker.argument(position)
    if value is None:
        walker.refuse(name, address, f"a {what} that is unknown", "one that follows from rank and arguments")
    n = value.n & 0xFFFFFFFF
    n = n - 2**32 if n >> 31 else n
    image = walker.program.image
    if what in ("source", "destination") and image.parts and n == (-2 if image.open_mpi else -1):
        return None
    if n < 0 and what in ("source", "tag"):
        return ANY
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
    if name in ("atoi", "atol", "strtol", "strtoul", "__isoc23_strtol", "__isoc23_strtoul"):
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
