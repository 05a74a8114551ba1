"""Finding a declared method by its name, and what it names by import path.

Nothing of `solve` is imported before a method is built: that is up to `load`. A run names
as well what its ranks compute on: "cpu"     "gpu" (all ranks)     "gpu,15*cpu" (one and fifteen)

Which methods go together: each `mismatch` returns a line on what does not fit, or "".
"""

from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from itertools import groupby
from operator import attrgetter
from typing import Any, Protocol, TypeAlias

from msgspec import Struct

from fembench.base.errors import InputError, shown
from fembench.base.plugins import SINGULAR, Kind, plugin
from fembench.base.units import plural
from fembench.methods.preconditioners import PRECONDITIONERS, PreconditionerMethod
from fembench.methods.recurrences import RECURRENCES, RecurrenceMethod
from fembench.methods.storages import DEFAULT_STORAGE, STORAGES, Solver, StorageMethod

AUTO = "auto"  # as a preconditioner: the one that is expected to reach the solution first
Method: TypeAlias = StorageMethod | PreconditionerMethod | RecurrenceMethod


class MethodChoice(Protocol):
    """How a case is solved."""

    @property
    def solver(self) -> Solver: ...
    @property
    def storage(self) -> str: ...
    @property
    def precond(self) -> str: ...
    @property
    def recurrence(self) -> str: ...


class Combination(Struct, frozen=True):
    """A choice that is not part of a case."""

    solver: Solver = "own"
    storage: str = "sym"
    precond: str = "none"
    recurrence: str = "standard"


def storages(solver: Solver | None = None) -> tuple[StorageMethod, ...]:
    """All, or those of a solver."""
    return tuple(s for s in STORAGES if solver in (None, s.solver))


def preconds(solver: Solver | None = None) -> tuple[PreconditionerMethod, ...]:
    """All, or those of a solver."""
    return tuple(p for p in PRECONDITIONERS if solver is None or solver in p.solvers)


def recurrences(solver: Solver = "own") -> tuple[RecurrenceMethod, ...]:
    """Those of a solver."""
    return tuple(r for r in RECURRENCES if r.solver == solver)


def storage_of(name: str, solver: Solver | None = None) -> StorageMethod:
    """The storage of that name, of a solver if one is given. Raises InputError."""
    return _named("storages", name, storages(solver), lambda s: solver in (None, s.solver))


def precond_of(name: str, solver: Solver | None = None) -> PreconditionerMethod:
    """The preconditioner of that name, of a solver if one is given. Raises InputError."""
    return _named("preconditioners", name, preconds(solver), lambda p: solver is None or solver in p.solvers)


def recurrence_of(name: str, solver: Solver = "own") -> RecurrenceMethod:
    """The recurrence of that name. Raises InputError."""
    return _named("recurrences", name, recurrences(solver), lambda r: r.solver == solver)


def _named(kind: Kind, name: str, known: Sequence[Method], fits: Callable[[Any], bool]) -> Any:
    """The method of that name, ours or another package's if it fits. Raises InputError."""
    for method in known:
        if method.name == name:
            return method
    brought = plugin(kind, name)
    if brought is not None and fits(brought):
        return brought
    words = [*names(known), *([AUTO] if kind == "preconditioners" else [])]
    expected = f"expected one of {', '.join(words)}"
    raise InputError(f"{SINGULAR[kind]} '{shown(name)}': {expected}, or one of an installed package")


def names(methods: Iterable[Method]) -> tuple[str, ...]:
    """Of declared methods, each once."""
    return tuple(dict.fromkeys(m.name for m in methods))


def described(methods: Iterable[Method]) -> str:
    """Names and descriptions in one line, for help texts."""
    return "; ".join(f"{m.name}: {m.help}" for m in methods)


def default_storages() -> str:
    """The default of each solver in one line, for help texts."""
    return "; ".join(f"{name} with --solver {solver}" for solver, name in DEFAULT_STORAGE.items())


def one_of(words: Sequence[str]) -> str:
    """ "a, b or c"."""
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else last


def product_name(choice: MethodChoice) -> str:
    """The name, in a profile, of the product whose speed prices that of the choice."""
    return f"product {storage_of(choice.storage).priced_as}"


def mismatch_device(choice: MethodChoice) -> str:
    """Whether the choice can run on a device."""
    return _unable(choice, "on_device", auto=True)


def mismatch_threads(choice: MethodChoice) -> str:
    """Whether several threads of a rank can share the work of the choice."""
    return _unable(choice, "threads", auto=False)


def _unable(choice: MethodChoice, ability: str, *, auto: bool) -> str:
    """Which part of a choice lacks an ability, an attribute of each; `auto`: that of precond auto."""
    able = attrgetter(ability)
    if choice.solver != "own":
        return f"solver {choice.solver}: expected solver own"
    if not able(storage_of(choice.storage)):
        return f"storage '{choice.storage}': expected {one_of(names(filter(able, storages())))}"
    if not able(recurrence_of(choice.recurrence)):
        return f"recurrence '{choice.recurrence}': expected {one_of(names(filter(able, recurrences())))}"
    if not (auto if choice.precond == AUTO else able(precond_of(choice.precond))):
        return f"precond '{choice.precond}': expected {one_of(names(filter(able, preconds())))}"
    return ""


def load(reference: str) -> Any:
    """The object named by "module:name"; the name may have dots."""
    module, name = reference.split(":")
    return attrgetter(name)(import_module(module))


def mismatch(choice: MethodChoice) -> str:
    """Whether the solver has the storage, the preconditioner and the recurrence."""
    solver = choice.solver
    try:
        storage, precond = (
            storage_of(choice.storage),
            precond_of("none" if choice.precond == AUTO else choice.precond),
        )
    except InputError as error:
        return str(error)
    if storage.solver != solver:
        return f"storage '{choice.storage}': solver {solver} has {', '.join(names(storages(solver)))}"
    if solver not in precond.solvers or (choice.precond == AUTO and solver != "own"):
        return f"precond '{choice.precond}': solver {solver} has {', '.join(names(preconds(solver)))}"
    try:
        recurrence_of(choice.recurrence, solver)
    except InputError:
        hint = "; choose others by petsc_options, as in '-ksp_type pipecg'" if solver == "petsc" else ""
        has = ", ".join(names(recurrences(solver)))
        return f"recurrence '{choice.recurrence}': solver {solver} has {has}{hint}"
    return ""


def mismatch_blocking(choice: MethodChoice) -> str:
    """Whether blocking messages can serve the choice."""
    if choice.solver == "own" and recurrence_of(choice.recurrence).waits:
        return ""
    expected = f"expected solver own, recurrence {one_of(names(r for r in recurrences() if r.waits))}"
    return f"solver {choice.solver}, recurrence '{choice.recurrence}': {expected}"


def mismatch_balance(choice: MethodChoice) -> str:
    """Whether blocks of cells can move while the choice iterates."""
    balanced = names(r for r in recurrences() if r.balances)
    if choice.solver != "own" or choice.recurrence not in balanced:
        expected = f"expected solver own, recurrence {one_of(balanced)}"
        return f"solver {choice.solver}, recurrence '{choice.recurrence}': {expected}"
    if choice.precond != AUTO and not precond_of(choice.precond).balances:
        known = one_of(names(p for p in preconds() if p.balances))
        return f"precond '{choice.precond}': expected {known}"
    return ""


CPU = "cpu"
DEVICES = (CPU, "gpu", "opencl")
LARGEST_COUNT = 1_000_000  # ranks; a longer list is a typing error


def device_by_rank(text: str, ranks: int) -> tuple[str, ...]:
    """The device of each rank. Raises InputError."""
    words = [word.strip() for word in text.split(",")]
    found: list[str] = []
    for word in words:
        count, star, name = word.rpartition("*")
        if name.strip() not in DEVICES or (star and not count.strip().isdecimal()):
            raise InputError(
                f"device '{shown(text)}': expected cpu, gpu or opencl, or a list by rank as in gpu,15*cpu"
            )
        times = int(count.strip()[:9] or 1)  # nine digits are too many
        if len(found) + times > LARGEST_COUNT:
            most = f"more than {LARGEST_COUNT} ranks; expected {ranks}"
            raise InputError(f"device '{shown(text)}' names {most}")
        found += [name.strip()] * times
    if len(words) == 1 and "*" not in text:
        return tuple(found * ranks)
    if len(found) != ranks:
        raise InputError(f"device '{shown(text)}' names {plural(len(found), 'rank')}; expected {ranks}")
    return tuple(found)


def device_text(devices: Sequence[str]) -> str:
    """The shortest text that names the device of each rank: 'gpu,15*cpu'; 'cpu' if all are alike."""
    alike = [(name, len([*same])) for name, same in groupby(devices)]
    if len(alike) == 1:
        return devices[0]
    return ",".join(f"{n}*{name}" if n > 1 else name for name, n in alike)
