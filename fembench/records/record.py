"""Record: the raw result of one run. Statistics are computed on reading.

Arrays are nested tuples, large ones packed; comments give their indices, outermost
first. Times are in seconds unless the name ends in `_ns`."""

import datetime
import math
import re
from collections.abc import Sequence
from typing import Literal

import msgspec

from fembench.base.units import size
from fembench.records.case import Case
from fembench.records.ledger import BalanceFacts
from fembench.records.schema import Packed
from fembench.records.verdict import Verdict

SCHEMA = 3
NOT_RECORDED = "not recorded"
NO_TIME = "no time"  # kind of a run that --minutes left no time for


class Frozen(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of every struct in a record."""


NO_JOULES = -1.0


class EnergyFacts(Frozen, frozen=True):
    """What counts the energy of a machine, or why nothing does."""

    reader: str = ""  # "RAPL", "RAPL, NVML", "pm_counters", …; "": none
    includes: tuple[str, ...] = ()  # "package-0", "dram of package-0", "GPU 0", "node": added up
    updates: float = 0.0  # seconds between two updates of the slowest counter
    unit: float = 0.0  # joules, of the coarsest counter
    why: str = ""  # what cannot be read, and the reason
    ask: str = ""  # what makes it readable


class HostFacts(Frozen, frozen=True):
    """One host, as observed by the run."""

    name: str
    cpu_model: str
    cores: int  # that this process may use
    sockets: int = 1
    memory_bytes: int = 0
    caches: dict[str, int] = {}  # {"L1d": bytes per core, "L2": …, "L3": …}
    governor: str = "unknown"
    kernel: str = ""
    architecture: str = ""
    clocksource: str = ""
    tsc_flags: tuple[str, ...] = ()
    huge_pages: str = "unknown"
    load_average: float = 0.0  # 1 minute, before the run
    steal_percent: float = 0.0  # of CPU time during the run: taken by the hypervisor
    throttled_percent: float = 0.0  # of CPU time during the run: withheld by a quota
    others_percent: float = -1.0  # of its ranks' CPU time in the timed sets, used by others; -1: not measured
    # uncertainty in percent, up to 100; 100 with others_percent -1: the system does not
    # report it
    others_resolution: float = 0.0
    cpu_quota: float = 0.0  # CPUs that the quota leaves; 0: none
    quota_group: str = ""  # control group that has the quota
    machine: int = -1  # hosts of one kernel have the same; -1: not recorded
    energy: EnergyFacts | None = None  # of its machine; None: not recorded


class DeviceFacts(Frozen, frozen=True):
    """What a rank computes on; "" for the cores of its host."""

    name: str = ""
    memory_bytes: int = 0
    driver: str = ""
    compiler: str = ""  # of its kernels
    place: str = ""  # on its host: PCI address or number; "": not recorded
    ranks: int = 1  # that share the device

    @property
    def room(self) -> float:
        """Bytes to plan a rank's part for; inf if it has no device, or its memory is not known."""
        return USABLE * self.memory_bytes / self.ranks or math.inf

    @property
    def limit(self) -> float:
        """Bytes beyond which a part is refused: parts miss their shares, small ones have more surface."""
        return self.room * FULL / USABLE

    def refusal(self, rank: int, cells: int, needed: float) -> str:
        """Why the rank's part, of so many cells and bytes, is refused. `part_held` reads it."""
        shared = f" for {self.ranks} ranks" if self.ranks > 1 else ""
        return (
            f"device of rank {rank}: its part needs {size(needed)}, {self.name} has "
            f"{size(self.memory_bytes)}{shared}, room for {cells * self.room / needed:.0f} of its {cells} "
            "cells: give the rank a smaller share, or use more ranks"
        )


def part_held(refusal: str) -> tuple[int, float] | None:
    """(rank, the fraction of its part that its device holds); None for other lines.

    Also None if the device holds next to nothing.
    """
    found = re.search(r"device of rank (\d+): .*, room for (\d+) of its (\d+) cells", refusal)
    if not found or int(found[2]) < FEW_CELLS:
        return None
    return int(found[1]), int(found[2]) / int(found[3])


USABLE, FULL = 0.9, 0.95  # of a device's memory; its driver needs some
FEW_CELLS = 10  # smaller parts miss their shares by far
VECTORS = 12  # of a rank on a device, at most: those of CG and its preconditioner


def bytes_on_device(matrix: float, dofs: float) -> float:
    """Memory for a part of so many dofs, with a matrix of so many bytes."""
    return matrix + 8 * VECTORS * dofs


class Environment(Frozen, frozen=True):
    """Provenance of a run (rule E7)."""

    hosts: tuple[HostFacts, ...]
    rank_host: tuple[int, ...]  # [rank] -> index into hosts
    affinity: tuple[tuple[int, ...], ...]  # [rank] -> CPUs that the rank may run on
    oversubscribed: bool  # more ranks on a host than cores
    mpi: str  # library and version
    launcher: str  # the mpiexec line
    command: str  # what the user typed
    versions: dict[str, str]  # python, numpy, scipy, mpi4py, msgspec, fembench
    commit: str  # of the source tree, or "unknown"
    dirty: bool  # False only if the sources are known to be as committed
    kernels: str  # "compiled" or "reference"
    blas_threads: int
    variables: dict[str, str]  # environment variables that matter
    synthetic: str = ""  # "" or how heterogeneity was emulated (rule E8)
    sources: str = ""  # SHA-256 of the program's sources; "": not recorded
    hosts_asked: str = NOT_RECORDED  # lines of the host file, or names from the batch system; "": neither
    # [rank] -> cores that it may run on, each by its first CPU; (): not recorded
    cores: tuple[tuple[int, ...], ...] = ()
    numa: tuple[int, ...] = ()  # [rank] NUMA node; -1: several, or unknown; (): not recorded
    crowded: bool = False  # more ranks than cores, or cores that ranks share, were asked for
    devices: tuple[DeviceFacts, ...] = ()  # [rank]; (): all ranks compute on cores
    # methods of other installed packages: "policy patient" -> "fembench-hello 1.0"
    brought: dict[str, str] = {}
    threads: int = 1  # of each rank

    @property
    def host_of_rank(self) -> tuple[str, ...]:
        """[rank] the name of its host."""
        return tuple(self.hosts[i].name for i in self.rank_host)


class MeshFacts(Frozen, frozen=True):
    name: str
    hash: str
    element: str
    n_nodes: int
    n_cells: int
    n_equations: int  # free dofs
    n_fixed: int  # restrained dofs
    min_quality: float = 0.0  # 1 regular, 0 degenerate


class PartitionFacts(Frozen, frozen=True):
    """The partition; arrays have one entry per rank."""

    method: str
    targets: tuple[float, ...]  # sum to 1
    cells: tuple[int, ...]
    dofs: tuple[int, ...]  # free dofs that the part touches
    blocks: tuple[int, ...]  # 3x3 blocks of the part's full stiffness
    shared_dofs: tuple[int, ...]  # free dofs on the interface
    shared_dofs_all: tuple[int, ...]  # the same, restrained dofs included
    neighbours: tuple[tuple[int, ...], ...]  # [rank] -> ranks it shares nodes with
    message_bytes: tuple[tuple[int, ...], ...]  # [rank][neighbour], one update, one direction
    cut: int  # facets of the dual graph that are cut
    seed: int = 0


class ClockCertificate(Frozen, frozen=True):
    """The clock of a run (rule C2); if ranks differ, the worst of them."""

    name: str  # the clock used
    ticks_per_second: float
    asked: str  # the clock asked for
    certified: bool  # True: TSC passed every condition; always True for OS clocks
    reason: str  # why, or why not
    drift: float  # relative difference of ticks/s against CLOCK_MONOTONIC_RAW, before to after
    read_ns: float  # cost of one reading
    quantum_ns: float  # smallest non-zero difference
    span_ns: float  # cost of one recorded span from Python, median
    ranks: tuple[str, ...] = ()  # clock of every rank
    devices: str = ""  # how the phases of device ranks are stamped; "": there are none


# sizes of the arrays by which memory is measured
BLOCK_BYTES = 40  # of the symmetric matrix, for each block of the whole stiffness
SMALLEST = 1 << 14  # bytes; below this, the call costs more than the memory access
MODEST = 1 << 25  # bytes at most


def triad_bytes(blocks: Sequence[int]) -> int:
    """Bytes of each rank's arrays, as large as the mean matrix."""
    return clamped(BLOCK_BYTES * sum(blocks) / len(blocks))


def clamped(n_bytes: float) -> int:
    """The nearest size that is measured."""
    return int(min(max(n_bytes, SMALLEST), MODEST))


StateKind = Literal["core", "memory", "matrix"]


class StateReading(Frozen, frozen=True):
    """How fast a host was at one moment, by a triad (a = b + s c)."""

    host: str
    # core: in the first-level cache; memory: outside the caches of a core, both by one rank while the others
    # sleep; matrix: at the size of the mean rank's matrix, median over the ranks, all at once
    what: StateKind
    ranks: int  # at once
    n_bytes: int  # of the arrays of a rank
    speed: float  # bytes/s


class SetTimes(Frozen, frozen=True):
    """One repetition of assembly and CG."""

    warmup: bool
    seconds: tuple[tuple[float, ...], ...] | Packed  # [rank][phase], phases of Record.phases
    counts: tuple[tuple[int, ...], ...] | Packed  # [rank][phase] number of spans
    iterations: int
    residual: float  # |r| by recurrence at the end
    # [rank] wall time on the rank's clock, since the end of the set before
    total: tuple[float, ...] | Packed
    # [host] of its machine, in the time of `total`; NO_JOULES (-1): not measured, or counted with an
    # earlier host of the same machine; (): no host has counters
    joules: tuple[float, ...] = ()


class LevelTimes(Frozen, frozen=True):
    """One level of multigrid: [rank] seconds per iteration, medians over the timed sets."""

    nodes: int  # of the mesh or grid
    # smoothing and transfers; of the last level, its solution on rank 0
    computing: tuple[float, ...] | Packed
    messages: tuple[float, ...] | Packed  # packing, sending, summing
    waiting: tuple[float, ...] | Packed  # for other ranks


class SolveFacts(Frozen, frozen=True):
    iterations: int
    converged: bool
    target: float  # absolute |r| at which CG stops; 0 for fixed work
    residuals: tuple[float, ...]  # |r_k|, k = 0 … iterations, of the last set
    allreduces: int  # per iteration, counted by the trace
    updates: int  # per iteration
    messages: int  # per iteration, over all ranks
    message_bytes: int  # per iteration, over all ranks
    flops: tuple[float, ...]  # [rank] per iteration
    bytes: tuple[float, ...]  # [rank] per iteration, from the arrays touched
    matrix_bytes: tuple[int, ...]  # [rank]
    bandwidth: tuple[float, ...] = ()  # [rank] better of read and triad at the size of the matrix, bytes/s
    # [rank] bytes/s, repeated before and after the sets, arrays of one size on all
    # ranks; (): not recorded
    triads: tuple[tuple[float, ...], ...] = ()
    # core and memory of each host, mean of before and after the sets; (): not recorded
    state: tuple[StateReading, ...] = ()
    levels: tuple[LevelTimes, ...] = ()  # of multigrid, the mesh first; (): another method, or not recorded
    # [rank][thread] seconds of computing in the sets; (): one thread per rank
    thread_seconds: tuple[tuple[float, ...], ...] = ()


class Verification(Frozen, frozen=True):
    """Checks of the solution, made after the clock has stopped."""

    rhs_norm: float
    true_residual: float  # |f - A u| from elements, without the stored matrix
    symmetry: float  # |x'Ay - y'Ax| / (|x||Ay| + |y||Ax|)
    positive: float  # x'Ax / (|x||Ax|)
    rigid_body: float  # max |A r| / (|A||r|) over six modes of the unconstrained operator
    energy: float  # strain energy, joule
    fingerprint: tuple[float, ...]  # seeded projections of u; same for every partition up to rounding
    solution_norm: float  # |u|_2 over distinct dofs
    max_displacement: float
    load_displacement: tuple[float, ...]  # u at the first loaded node, or ()
    reactions: tuple[float, float, float]  # sum over restrained nodes, newton
    copies_identical: bool  # shared dofs bit-identical on all sharers
    exact_error: float = -1.0  # relative L2 error; -1: the problem has no exact solution


class Reference(Frozen, frozen=True):
    """The solution to compare with (rules A4, A5): by default of the one-rank run."""

    source: str  # record id, "shipped: …", or "storage …, solved in the same run"
    energy: float
    iterations: int  # 0 if it was solved by another method
    fingerprint: tuple[float, ...]
    solution_norm: float
    same_parts: bool = False  # as in the run itself: says nothing about partitions


class Event(Frozen, frozen=True, array_like=True):
    """One span of the trace."""

    rank: int
    phase: int
    iteration: int  # -1 outside CG
    begin: float  # seconds since the run's common start, on the clock of rank 0's host (Record.offsets)
    end: float
    partners: tuple[int, ...] = ()  # ranks that messages went to or came from; () with bytes: all ranks
    # to or from each partner, or of the all-reduce; (): no message, or not recorded
    bytes: tuple[int, ...] = ()


class ClockOffset(Frozen, frozen=True):
    """A host's clock relative to rank 0's host's, by ping-pong before and after the sets.

    Times in `Record.events` are corrected by this offset, interpolated over the run.
    """

    host: int  # index into Environment.hosts
    before: float  # seconds by which it was ahead
    after: float
    uncertainty: float  # half the shortest round trip, before or after; 0: the same clock
    drift: float  # of the offset, seconds per second


class Record(Frozen, frozen=True):
    schema: int
    id: str
    created: str  # ISO 8601, UTC
    case: Case
    environment: Environment
    mesh: MeshFacts
    problem: dict[str, object]  # the problem as resolved, every default filled in
    partition: PartitionFacts
    clock: ClockCertificate
    phases: tuple[str, ...]  # names, in the order of every array "by phase"
    setup: tuple[tuple[float, ...], ...] | Packed  # [rank][phase] outside the sets, measured once
    total: tuple[float, ...]  # [rank] from the first line of the program to the end of output
    sets: tuple[SetTimes, ...]
    solve: SolveFacts
    verification: Verification
    reference: Reference | None
    peak_memory: tuple[int, ...]  # [rank] bytes
    events: tuple[Event, ...]
    verdict: Verdict
    balance: BalanceFacts | None = None  # None: run without a balancing policy
    dropped: tuple[int, ...] = ()  # [rank] spans for which the trace had no room; (): not recorded
    offsets: tuple[ClockOffset, ...] = ()  # one per host; (): not recorded, hosts aligned by one barrier

    def __post_init__(self) -> None:
        check_id(self.id)

    def __repr__(self) -> str:
        return f"<Record {self.id}: {self.verdict.status}>"


class Failure(Frozen, frozen=True):
    """A run without a record, or without time for it; a campaign keeps this instead."""

    schema: int
    id: str
    created: str
    case: Case
    kind: str  # "input", "failed", "crashed", "killed", "timeout", NO_TIME
    message: str  # one line
    exit_status: int
    output: str  # the last lines of its output

    def __post_init__(self) -> None:
        check_id(self.id)


def now_utc() -> str:
    """The current time in UTC, in ISO 8601, to the second."""
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")


def check_id(id: str) -> None:
    """Raises ValueError unless the id is a plain file name, because paths contain it."""
    if not re.fullmatch(r"[^/\\\0.][^/\\\0]*", id):
        raise ValueError(f"id '{id}': expected a file name without folders and without a leading dot")
