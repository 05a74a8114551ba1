"""Case: everything that decides what one run computes. Defaults used are written into the record.

A field is declared here once: its type, its default, and an `Option` with its help, limits and role. The
command line, campaign files, comparisons, reports and the documentation are derived from these
declarations, so a new field is added here and in the code that uses it, nowhere else.
"""

import dataclasses
import math
import typing
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from fembench.base.config import convert
from fembench.base.errors import InputError
from fembench.methods.combinations import mismatch, mismatch_balance, mismatch_blocking
from fembench.methods.lookup import default_storages, described, names, preconds, storages, variants
from fembench.methods.storages import Solver
from fembench.records.renamed import renamed

if typing.TYPE_CHECKING:
    StorageName: TypeAlias = str
    PrecondName: TypeAlias = str
    VariantName: TypeAlias = str
else:  # whatever is declared in `methods`
    StorageName = Literal[names(storages())]
    PrecondName = Literal[names(preconds())]
    VariantName = Literal[names(variants())]
Balance = Literal[
    "",
    "none",
    "observe",
    "amortised",
    "migbsp",
    "migbsp++",
    "migbsp++-scan",
    "greedy",
    "refine",
    "random",
    "rcb",
    "metis-shares",
    "diffusion",
]
Role = Literal[
    "question",  # what is asked: other values are another result
    "method",  # how it is computed
    "placement",  # how ranks share the work: one rank has no use for it
    "effort",  # how long and how closely it is measured
    "synthetic",  # machines that are emulated
    "text",  # changes no number
]
ABSOLUTE = (
    "corner-load",
)  # problems that are solved to an absolute tolerance unless the case says otherwise
LARGEST = 2**31 - 1  # that a count may be


@dataclasses.dataclass(frozen=True, slots=True)
class Option:
    """What the declaration of a field says besides its type and default."""

    help: str
    _: dataclasses.KW_ONLY
    metavar: str = ""  # "": a short list of choices needs none, whole numbers are N
    least: float = 0  # of a number in a new case; records of earlier versions may have less
    most: float = LARGEST  # of a whole number
    within: tuple[float, float] | None = None  # a number between these, themselves excluded
    role: Role | None = None  # where it is not that of the group
    varied: bool = False  # people vary it on purpose: reports name results by it
    short: str = ""  # format of a value in the name of a result; "": field and value
    setup_only: bool = False  # it changes the set-up of a run, not its iterations


@dataclasses.dataclass(frozen=True, slots=True)
class Group:
    """Fields that belong together."""

    title: str  # over their options
    role: Role


class CaseQuestion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is solved."""

    mesh: Annotated[
        str,
        Option(
            "preset (m1 m2 m3 s m l xl), box:NXxNYxNZ[:tet4|hex8], box:N-equations, or a mesh file",
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
    """How it is solved."""

    solver: Annotated[
        Solver,
        Option("fembench's own conjugate gradients, or PETSc's solvers on the same system"),
    ] = "own"
    storage: Annotated[
        StorageName,
        Option(
            f"storage of the stiffness matrix: {described(storages())} (default: {default_storages()})",
            varied=True,
            short="{}",
        ),
    ] = "sym"
    precond: Annotated[
        PrecondName,
        Option(f"preconditioner: {described(preconds())}", role="question", varied=True, short="{}"),
    ] = "none"
    variant: Annotated[
        VariantName,
        Option(
            f"variant of the conjugate gradient recurrence: {described(variants())}", varied=True, short="{}"
        ),
    ] = "standard"
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
            "stop when the norm of the residual has fallen to this",
            metavar="NUMBER",
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
        ),
    ] = ""  # of a case it is never "": see Case
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
            "box that the ranks build in parallel",
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
        Balance,
        Option(
            "move blocks of cells between ranks while CG runs, by this policy (recommended: amortised): "
            + ", ".join(typing.get_args(Balance)[1:]),
            metavar="POLICY",
            short="balance {}",
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
    drain: Annotated[
        str,
        Option("empty this rank from this iteration on: 2@100", metavar="RANK@ITERATION", short="drain {}"),
    ] = ""


class CaseEffort(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How it is measured."""

    sets: Annotated[int, Option("timed repetitions of assembly and CG within the run", least=1)] = 3
    warmups: Annotated[int, Option("untimed sets before them; they are recorded but not counted")] = 1
    seconds: Annotated[
        float, Option("add sets until they have spent this much time in CG", metavar="SECONDS")
    ] = 0.0
    clock: Annotated[
        str, Option("auto, tsc, perf_counter_ns, mpi_wtime, monotonic_raw or time_ns", metavar="CLOCK")
    ] = "auto"
    trace_iterations: Annotated[
        int, Option("iterations of which every event is recorded", most=1_000_000)  # kept in memory
    ] = 3


class CaseSynthetic(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Emulated machines."""

    emulate: Annotated[
        str,
        Option("SYNTHETIC: relative speed of each rank, as in 1,1,0.5,0.25", metavar="SPEEDS"),
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


class CaseOutput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What else is kept."""

    fields: Annotated[
        bool,
        Option("also write displacement, stress and part, for pictures and ParaView", short="fields"),
    ] = False
    label: Annotated[str, Option("free text kept in the record", metavar="TEXT", short="{}")] = ""


class Case(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One run of the benchmark. `fembench run` has an option for every field, of the field's name.

    A `tolerance_kind` of "" becomes the kind that suits the problem, so that a record says which it was.
    """

    question: Annotated[CaseQuestion, Group("what is solved", "question")] = CaseQuestion()
    method: Annotated[CaseMethod, Group("how it is solved", "method")] = CaseMethod()
    stop: Annotated[CaseStop, Group("when a solve ends", "question")] = CaseStop()
    placement: Annotated[CasePlacement, Group("how the ranks share the mesh", "placement")] = CasePlacement()
    balancing: Annotated[CaseBalancing, Group("rebalancing while CG runs", "placement")] = CaseBalancing()
    effort: Annotated[CaseEffort, Group("how it is measured", "effort")] = CaseEffort()
    synthetic: Annotated[CaseSynthetic, Group("emulated machines", "synthetic")] = CaseSynthetic()
    output: Annotated[CaseOutput, Group("what else is kept", "text")] = CaseOutput()

    @classmethod
    def of(cls, **values: Any) -> "Case":
        """The case with these fields, by their names, all others at their defaults."""
        grouped = _grouped(values)
        made: dict[str, Any] = {g.name: g.type(**grouped[g.name]) for g in _GROUPS if g.name in grouped}
        return cls(**made)

    def with_(self, **values: Any) -> "Case":
        """This case with other values of these fields."""
        grouped = {
            name: msgspec.structs.replace(getattr(self, name), **given)
            for name, given in _grouped(values).items()
        }
        return msgspec.structs.replace(self, **grouped)

    def flat(self) -> dict[str, Any]:
        """{field: value} of all fields, in the order of their declaration."""
        return {f.name: getattr(getattr(self, f.group), f.name) for f in FIELDS.values()}

    def said(self) -> dict[str, Any]:
        """{field: value} of what is not at its default."""
        usual = Case.of(problem=self.question.problem).flat() | {"problem": FIELDS["problem"].default}
        return {name: value for name, value in self.flat().items() if value != usual[name]}

    @property
    def emulated(self) -> bool:
        """Whether computing is stretched."""
        s = self.synthetic
        return bool(s.emulate or s.emulate_change or s.dilate != 1)

    def __post_init__(self) -> None:
        if not self.stop.tolerance_kind:
            kind = "absolute" if self.question.problem in ABSOLUTE else "relative"
            resolved = msgspec.structs.replace(self.stop, tolerance_kind=kind)
            msgspec.structs.force_setattr(self, "stop", resolved)
        _check_method(self)
        if self.method.exchange == "blocking":
            _check_blocking(self)
        if self.balancing.balance:
            _check_balance(self)
        elif self.balancing.drain or self.synthetic.emulate_change:
            raise ValueError("drain, emulate_change: expected a policy, as in balance = 'amortised'")
        values = self.flat()
        for name in ("max_iterations", "iterations", "sets", "warmups", "trace_iterations", "seconds"):
            if values[name] < 0:
                raise ValueError(f"{name} = {values[name]}: expected 0 or more")
        if not math.isfinite(self.effort.seconds):
            raise ValueError(f"seconds = {self.effort.seconds}: expected a finite number")
        if not 1 <= self.synthetic.dilate < float("inf"):
            raise ValueError(f"dilate = {self.synthetic.dilate}: expected a number of at least 1")
        if not 0 <= self.stop.tolerance < float("inf"):
            raise ValueError(f"tolerance = {self.stop.tolerance}: expected a number of 0 or more")


def _check_method(case: Case) -> None:
    if line := mismatch(case.method):
        raise ValueError(line)
    if case.method.petsc_options and case.method.solver != "petsc":
        raise ValueError("petsc_options: expected solver = 'petsc'")


def _check_blocking(case: Case) -> None:
    if case.method.overlap:
        raise ValueError("exchange 'blocking' overlaps nothing: expected overlap = false (--no-overlap)")
    if line := mismatch_blocking(case.method):
        raise ValueError(f"exchange 'blocking' with {line}")
    if case.balancing.balance:
        raise ValueError("exchange 'blocking' with balance: expected no balance")


def _check_balance(case: Case) -> None:
    b = case.balancing
    if line := mismatch_balance(case.method):
        raise ValueError(f"balance with {line}")
    for name in ("blocks_per_rank", "look_every", "first_look"):
        if getattr(b, name) < 1:
            raise ValueError(f"{name} = {getattr(b, name)}: expected at least 1")
    if not 0 < b.band < 1:
        raise ValueError(f"band = {b.band}: expected a number between 0 and 1")


@dataclasses.dataclass(frozen=True, slots=True)
class CaseGroup:
    """A group as declared."""

    name: str  # attribute of a case
    type: type[msgspec.Struct]
    title: str
    role: Role


@dataclasses.dataclass(frozen=True, slots=True)
class CaseField:
    """A field as declared."""

    name: str
    group: str  # attribute of a case
    title: str  # of the group
    type: Any  # bool, int, float, str, or a Literal
    default: Any
    option: Option
    role: Role

    def shown(self, value: object) -> str:
        """A value in the name of a result: 'jacobi', '200 iterations', 'seed 3'."""
        return self.option.short.format(value) if self.option.short else f"{self.name} {value}"

    @property
    def choices(self) -> tuple[str, ...]:
        """The values that it may have; () where any of its type will do."""
        return typing.get_args(self.type)


def _declared(struct: type[msgspec.Struct]) -> list[tuple[msgspec.structs.FieldInfo, Any, Any]]:
    """(field, type, declaration) of an annotated struct."""
    return [(f, *typing.get_args(f.type)) for f in msgspec.structs.fields(struct)]


_GROUPS = [CaseGroup(f.name, kind, said.title, said.role) for f, kind, said in _declared(Case)]
FIELDS = {  # by name, in the order of their declaration
    f.name: CaseField(f.name, g.name, g.title, kind, f.default, said, said.role or g.role)
    for g in _GROUPS
    for f, kind, said in _declared(g.type)
}


def fields_of(*roles: Role, varied: bool | None = None) -> tuple[str, ...]:
    """Names of the fields of these roles, in the order of their declaration.

    varied: only those that people vary on purpose, or only the others.
    """
    return tuple(f.name for f in FIELDS.values() if f.role in roles and varied in (None, f.option.varied))


_FLAT = msgspec.defstruct(  # fields without groups, as campaigns and options give them
    "FlatCase",
    [(f.name, f.type, f.default) for f in FIELDS.values()],
    kw_only=True,
    forbid_unknown_fields=True,
)


def _grouped(values: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """{group: {field: value}}. Raises TypeError for a name that is no field."""
    found: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        if name not in FIELDS:
            raise TypeError(f"a case has no field '{name}'")
        found.setdefault(FIELDS[name].group, {})[name] = value
    return found


def flat_case(values: Mapping[str, Any], where: str) -> Case:
    """The case of {field: value}, all others at their defaults. Raises InputError naming the field."""
    values, _ = renamed(values)
    convert(dict(values), _FLAT, where=where)  # names, and types as one list has them
    return convert(_grouped(values), Case, where=where)


def new_case(values: Mapping[str, Any], where: str) -> Case:
    """A case that is to be run. Raises InputError naming the field."""
    case = flat_case(values, where)
    for name, value in case.flat().items():
        option = FIELDS[name].option
        if type(value) is int and not option.least <= value <= option.most:
            limit = f"at least {option.least}" if value < option.least else f"at most {option.most}"
            raise InputError(f"{where}: {name} = {value}: expected {limit}")
        if option.within and not option.within[0] < value < option.within[1]:
            low, high = option.within
            raise InputError(f"{where}: {name} = {value}: expected a number between {low:g} and {high:g}")
    return case
