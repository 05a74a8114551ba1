"""The fields of a case, each declared once: options, files, reports, documents follow."""

from typing import Annotated, Literal

import msgspec

from fembench.methods.lookup import (
    AUTO,
    CPU,
    default_storages,
    described,
    names,
    preconds,
    recurrences,
    storages,
)
from fembench.methods.policies import POLICIES, IntervalRule
from fembench.methods.storages import Solver
from fembench.records.option import LARGEST, Option

Origin = Literal["strict", "mean"]


class CaseQuestion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The system to solve."""

    mesh: Annotated[
        str,
        Option(
            "preset (m1 m2 m3 s m l xl), box:NXxNYxNZ[:tet4|hex8], box:EQUATIONS, or a mesh file or folder",
            metavar="MESH",
            varied=True,
        ),
    ] = "m1"
    problem: Annotated[
        str,
        Option(
            "preset (corner-load cantilever bar patch manufactured) or a TOML file",
            metavar="PROBLEM",
            varied=True,
            short="{}",
        ),
    ] = "corner-load"


class CaseMethod(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The method of solution."""

    solver: Annotated[
        Solver,
        Option("fembench's own conjugate gradients, or PETSc's solvers on the same system"),
    ] = "own"
    storage: Annotated[
        str,
        Option(
            f"storage of the stiffness matrix: {described(storages())} (default: {default_storages()})",
            varied=True,
            short="{}",
            choices=names(storages()),
            more="storages",
        ),
    ] = "sym"
    precond: Annotated[
        str,
        Option(
            f"preconditioner: {described(preconds())}; {AUTO}: the one that should reach the solution first",
            role="question",
            varied=True,
            short="{}",
            choices=(*names(preconds()), AUTO),
            more="preconditioners",
        ),
    ] = "none"
    recurrence: Annotated[
        str,
        Option(
            f"recurrence of conjugate gradients: {described(recurrences())}",
            varied=True,
            short="{}",
            choices=names(recurrences()),
            more="recurrences",
        ),
    ] = msgspec.field(default="standard", name="variant")  # as older records have it
    device: Annotated[
        str,
        Option(
            "what the ranks compute on: cpu; gpu (by CuPy, or a GPU of OpenCL); opencl (any device of it); "
            "or a list by rank, as in gpu,15*cpu",
            metavar="DEVICES",
            varied=True,
            short="on {}",
        ),
    ] = CPU
    petsc_options: Annotated[
        str,
        Option("options for PETSc, in one string; they may also follow `--`", metavar="OPTIONS"),
    ] = ""
    overlap: Annotated[
        bool,
        Option(
            "compute interior rows while interface messages travel",
            role="placement",
            varied=True,
            short="no overlap",
        ),
    ] = True
    exchange: Annotated[
        Literal["nonblocking", "blocking"],
        Option(
            "interface messages: nonblocking, or blocking sends and receives (requires --no-overlap)",
            role="placement",
            varied=True,
            short="{}",
        ),
    ] = "nonblocking"


class CaseStop(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When a solve ends."""

    tolerance: Annotated[
        float,
        Option(
            "stop when the norm of the residual has fallen to this; below 1 where it is relative",
            metavar="NUMBER",
            within=(0, LARGEST),
            varied=True,
            short="tol {:g}",
        ),
    ] = 1e-6
    tolerance_kind: Annotated[
        Literal["", "absolute", "relative"],
        Option(
            "whether the tolerance is absolute, in newtons, or relative to the load (default: relative; "
            "absolute for the problem corner-load, as in the study that it comes from)",
            varied=True,
            short="{} tolerance",
        ),
    ] = ""  # resolved when a case is made: see Case
    max_iterations: Annotated[
        int, Option("give up after this many iterations; 0: ten times the number of equations")
    ] = 0
    iterations: Annotated[
        int,
        Option(
            "fixed work: exactly this many iterations per set; 0: iterate to the tolerance",
            varied=True,
            short="{} iterations",
        ),
    ] = 0


class CasePlacement(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the ranks share the mesh."""

    ranks: Annotated[
        int, Option("number of MPI ranks; up to 64 per core without a host file", least=1, varied=True)
    ] = 1
    threads: Annotated[
        int,
        Option(
            "threads of each rank, which gets as many cores; results are the same for any number",
            least=1,
            most=1024,
            role="method",
            varied=True,
            short="{} threads",
        ),
    ] = 1
    hosts: Annotated[
        str,
        Option(
            "hosts of the job to use, each filled before the next: n1,n3 or n[1-3] (default: all)",
            metavar="HOSTS",
            varied=True,
            short="on {}",
        ),
    ] = ""
    per_node: Annotated[
        int,
        Option("ranks per host; 0: as many as it takes", varied=True, short="{} per host"),
    ] = 0
    shares: Annotated[
        str,
        Option(
            "target share of the cells per rank: 7:1, 2,1,1 or 8*1 (default: equal)",
            metavar="SHARES",
            varied=True,
            short="{}",
        ),
    ] = ""
    partitioner: Annotated[
        Literal["metis", "rcb", "blocks"],
        Option(
            "how the mesh is partitioned: by METIS, by recursive coordinate bisection, or into blocks of a "
            "box that the ranks build in parallel (default: metis; rcb for a folder of slices)",
            varied=True,
            short="{}",
        ),
    ] = "metis"
    replicated: Annotated[
        bool,
        Option("let every rank partition the whole mesh", varied=True, short="replicated", setup_only=True),
    ] = False
    seed: Annotated[int, Option("seed of the partitioner")] = 0


class CaseBalancing(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Rebalancing while CG runs."""

    balance: Annotated[
        str,
        Option(
            "move blocks of cells between ranks while CG runs, by this policy (recommended: amortised): "
            + ", ".join(POLICIES),
            metavar="POLICY",
            short="balance {}",
            choices=("", *POLICIES),
            more="policies",
        ),
    ] = ""
    blocks_per_rank: Annotated[
        int, Option("blocks that each part is divided into", least=1, short="{} blocks per rank")
    ] = 4
    look_every: Annotated[int, Option("iterations between two calls of the balancer", least=1)] = 10
    first_look: Annotated[int, Option("calls before the balancer first looks at the times", least=1)] = 2
    band: Annotated[
        float,
        Option("tolerated deviation of a rank's time from the mean", metavar="FRACTION", within=(0.0, 1.0)),
    ] = 0.1
    widen_after: Annotated[
        int,
        Option("widen the band by half after this many looks without a move, until one moves; 0: never"),
    ] = 0
    interval: Annotated[
        IntervalRule,
        Option(
            "calls between two looks: twice as many while the ranks are balanced, else one (double) or half "
            "(halve); or one more, else one less, down to --first-look (step); default: that of the policy",
        ),
    ] = "policy"
    hysteresis: Annotated[
        float,
        Option(
            "fraction of the iteration that moves must save, in addition to the noise of the times; 0: any",
            metavar="FRACTION",
            most=0.99,
        ),
    ] = 0.05
    cooldown: Annotated[int, Option("looks for which a block stays on its rank after a move")] = 2
    ageing: Annotated[
        float,
        Option(
            "weight of the newest times in their mean, up to 1 (default: 0.3, and changes beyond the noise "
            "count in full at once)",
            metavar="WEIGHT",
            most=1,
        ),
    ] = 0.0
    origin: Annotated[
        Origin,
        Option("migbsp policies: blocks leave ranks that are above the band (strict) or above the mean"),
    ] = "strict"
    net: Annotated[
        bool, Option("migbsp policies: count messages that become remote, not only those that become local")
    ] = False
    link_costs: Annotated[
        str,
        Option(
            "profile of fembench characterize --network with the costs of messages between the hosts "
            "(default: measured between all pairs of ranks at the start)",
            metavar="FILE",
        ),
    ] = ""
    drain: Annotated[
        str,
        Option("empty this rank from this iteration on: 2@100", metavar="RANK@ITERATION", short="drain {}"),
    ] = ""


class CaseEffort(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the run is measured; by default, so that it can be VALID (rule D1)."""

    sets: Annotated[
        int,
        Option(
            "timed repetitions of assembly and CG within the run (default: 10, and more until --precision is "
            "reached; a number alone is exact)",
            least=1,
        ),
    ] = 10
    warmups: Annotated[int, Option("untimed sets before them, recorded but not counted (default: 2)")] = 2
    seconds: Annotated[
        float,
        Option(
            "add sets until they have spent this much time in CG (at most 10 000 sets)",
            metavar="SECONDS",
            within=(0, LARGEST),
        ),
    ] = 0.0
    precision: Annotated[
        float,
        Option(
            "add sets until the 95 % interval of the median time of CG is within this percentage of the "
            "median and times do not drift, or --max-seconds are spent (default: 2, as the rules D1 and D3 "
            "demand; 0 with --sets alone)",
            metavar="PERCENT",
            most=100,
        ),
    ] = 2.0
    max_seconds: Annotated[
        float,
        Option(
            "with --precision: add no more sets after this much time in CG",
            metavar="SECONDS",
            within=(0, LARGEST),
        ),
    ] = 20.0
    clock: Annotated[str, Option("auto, tsc or perf_counter_ns", metavar="CLOCK")] = "auto"
    trace_iterations: Annotated[
        int, Option("iterations of which every event is recorded", most=1_000_000)  # kept in memory
    ] = 3


class CaseSynthetic(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Emulated hosts."""

    emulate: Annotated[
        str,
        Option("SYNTHETIC: speed of each rank, the fastest being 1, as in 1,1,0.5,0.25", metavar="SPEEDS"),
    ] = ""
    dilate: Annotated[
        float,
        Option(
            "SYNTHETIC: slow the computing of all ranks by this factor, so that several can share a core",
            metavar="FACTOR",
            least=1,
        ),
    ] = 1.0
    emulate_change: Annotated[
        str,
        Option(
            "SYNTHETIC: relative speeds from an iteration on, as in 100:1,1,0.33;300:1,1,1 (with --balance)",
            metavar="ITERATION:SPEEDS",
            role="placement",
        ),
    ] = ""
    hot_spot: Annotated[
        str,
        Option(
            "SYNTHETIC: blocks that cost a multiple of their work from an iteration on, as in "
            "100:0-3x3;300:4-7x3; all others cost their work (with --balance)",
            metavar="ITERATION:BLOCKSxWEIGHT",
            role="placement",
        ),
    ] = ""


class CaseOutput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Additional output."""

    fields: Annotated[
        bool,
        Option("also write displacement, stress and part, for pictures and ParaView", short="fields"),
    ] = False
    label: Annotated[str, Option("free text kept in the record", metavar="TEXT", short="{}")] = ""
