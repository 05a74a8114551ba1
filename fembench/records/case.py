"""Case: everything that decides what a run computes; recorded with every default.

Its fields are declared in `case_fields.py`; which values fit together is checked here.
"""

import operator
import os
import typing
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from fembench.base import plugins
from fembench.base.config import as_typed, convert
from fembench.base.errors import InputError
from fembench.base.plugins import plugin
from fembench.methods.lookup import (
    CPU,
    DEVICES,
    device_by_rank,
    device_text,
    mismatch,
    mismatch_balance,
    mismatch_blocking,
    mismatch_device,
    mismatch_threads,
)
from fembench.methods.policies import POLICIES
from fembench.records.case_fields import (
    CaseBalancing,
    CaseEffort,
    CaseMethod,
    CaseOutput,
    CasePlacement,
    CaseQuestion,
    CaseStop,
    CaseSynthetic,
)
from fembench.records.option import Group, Option, Role

ABSOLUTE = ("corner-load",)  # problems whose tolerance is absolute by default


class Case(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One run of the benchmark. `fembench run` has an option for every field.

    A `tolerance_kind` of "" is replaced by the problem's default, so that every record
    states the kind used, and a list of devices by its shortest spelling, so that the same
    list is the same case. Raises ValueError for values that do not fit together.
    """

    question: Annotated[CaseQuestion, Group("what is solved", "question")] = CaseQuestion()
    method: Annotated[CaseMethod, Group("how it is solved", "method")] = CaseMethod()
    stop: Annotated[CaseStop, Group("when a solve ends", "question")] = CaseStop()
    placement: Annotated[CasePlacement, Group("how the ranks share the mesh", "placement")] = CasePlacement()
    balancing: Annotated[CaseBalancing, Group("rebalancing while CG runs", "placement")] = CaseBalancing()
    effort: Annotated[CaseEffort, Group("how it is measured", "effort")] = CaseEffort()
    synthetic: Annotated[CaseSynthetic, Group("emulated hosts", "synthetic")] = CaseSynthetic()
    output: Annotated[CaseOutput, Group("additional output", "text")] = CaseOutput()

    @classmethod
    def of(cls, **values: Any) -> "Case":
        """The case with these fields; all others have their defaults."""
        grouped = _grouped(exactly(values))
        made: dict[str, Any] = {g.name: g.type(**grouped[g.name]) for g in _GROUPS if g.name in grouped}
        return cls(**made)

    def with_(self, **values: Any) -> "Case":
        """This case with these fields changed."""
        grouped = {
            name: msgspec.structs.replace(getattr(self, name), **given)
            for name, given in _grouped(values).items()
        }
        return msgspec.structs.replace(self, **grouped)

    def flat(self) -> dict[str, Any]:
        """{field: value} of all fields, in the order of their declaration."""
        return dict(zip(FIELDS, _VALUES(self)))

    def said(self) -> dict[str, Any]:
        """{field: value} of the fields that differ from their defaults."""
        deciding: dict[str, Any] = {"problem": self.question.problem}  # they decide defaults
        if self.effort.sets != FIELDS["sets"].default:
            deciding |= {"sets": self.effort.sets}
        usual = Case.of(**deciding).flat() | {name: FIELDS[name].default for name in deciding}
        return {name: value for name, value in self.flat().items() if value != usual[name]}

    @property
    def emulated(self) -> bool:
        """Whether computing is slowed down artificially."""
        s = self.synthetic
        return bool(s.emulate or s.emulate_change or s.hot_spot or s.dilate != 1)

    @property
    def devices(self) -> tuple[str, ...]:
        """[rank] what it computes on: "cpu", or a kind of device."""
        return device_by_rank(self.method.device, self.placement.ranks)

    def __post_init__(self) -> None:
        if not self.stop.tolerance_kind:
            kind = "absolute" if self.question.problem in ABSOLUTE else "relative"
            resolved = msgspec.structs.replace(self.stop, tolerance_kind=kind)
            msgspec.structs.force_setattr(self, "stop", resolved)
        if self.method.device not in DEVICES:
            method = msgspec.structs.replace(self.method, device=_spelt(self))
            msgspec.structs.force_setattr(self, "method", method)
        check(self)


TEXT = "text in quotes"


class CaseGroup(msgspec.Struct, frozen=True):
    """The declaration of a group of fields."""

    name: str  # attribute of a case
    type: type[msgspec.Struct]
    title: str
    role: Role


class CaseField(msgspec.Struct, frozen=True):
    """The declaration of a field."""

    name: str
    stored: str  # its name in records
    group: str  # attribute of a case
    title: str  # of the group
    type: Any  # bool, int, float, str, or a Literal
    default: Any
    option: Option
    role: Role

    def shown(self, value: object) -> str:
        """A value as part of the name of a result: 'jacobi', '200 iterations', 'seed 3'."""
        return self.option.short.format(value) if self.option.short else f"{self.name} {value}"

    @property
    def choices(self) -> tuple[str, ...]:
        """The allowed values; () if any value of the type is allowed."""
        known = typing.get_args(self.type) or self.option.choices
        return known + plugins.names(self.option.more) if self.option.more else known

    def allows(self, value: object) -> bool:
        """Whether a value has the type of the field."""
        if self.choices:
            return value in self.choices
        kinds = (int, float) if self.type is float else (self.type,)
        return isinstance(value, kinds) and (self.type is bool or not isinstance(value, bool))

    @property
    def takes(self) -> str:
        """What a value may be: 'a whole number of at least 1'."""
        if self.choices:
            *others, last = (f"'{word}'" for word in self.choices)
            return f"{', '.join(others)} or {last}" if others else last
        if self.type is int:
            return f"a whole number of at least {self.option.least:g}"
        return {bool: "true or false", float: "a number"}.get(self.type, TEXT)


def _declared(struct: type[msgspec.Struct]) -> list[tuple[msgspec.structs.FieldInfo, Any, Any]]:
    """(field, type, declaration) of an annotated struct."""
    return [(f, *typing.get_args(f.type)) for f in msgspec.structs.fields(struct)]


_GROUPS = [CaseGroup(f.name, kind, said.title, said.role) for f, kind, said in _declared(Case)]
FIELDS = {  # by name, in the order of their declaration
    f.name: CaseField(f.name, f.encode_name, g.name, g.title, kind, f.default, said, said.role or g.role)
    for g in _GROUPS
    for f, kind, said in _declared(g.type)
}
_VALUES = operator.attrgetter(*(f"{f.group}.{f.name}" for f in FIELDS.values()))


def fields_of(*roles: Role, varied: bool | None = None) -> tuple[str, ...]:
    """Names of the fields of these roles, in the order of their declaration.

    `varied`: only those that users vary on purpose (True), or only the others (False).
    """
    return tuple(f.name for f in FIELDS.values() if f.role in roles and varied in (None, f.option.varied))


# with one of these fields, a solve ends at its tolerance, or as they say; else after the usual iterations
# of its mesh, if that is a preset that has them
OTHER_WORK = {"problem", "solver", "precond", "balance", "drain", "hot_spot"}
OTHER_WORK |= {name for name, field in FIELDS.items() if field.group == "stop"}

_FLAT = msgspec.defstruct(  # fields without groups, as in campaigns and options
    "FlatCase",
    [(f.name, f.type, f.default) for f in FIELDS.values()],
    kw_only=True,
    forbid_unknown_fields=True,
)


def _grouped(values: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """{group: {field: value}}. Raises TypeError for an unknown field."""
    found: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        if name not in FIELDS:
            raise TypeError(f"a case has no field '{name}'")
        found.setdefault(FIELDS[name].group, {})[name] = value
    return found


def exactly(values: Mapping[str, Any]) -> dict[str, Any]:
    """The fields given: a number of sets without a precision is exact."""
    return {"precision": 0.0, **values} if "sets" in values else dict(values)


def new_case(values: Mapping[str, Any], where: str) -> Case:
    """The case of {field: value}, else defaults. Raises InputError naming the field."""
    values = exactly(values)
    if not values.get("partitioner"):  # a sliced mesh, a folder, need not be held by any rank
        sliced = os.path.isdir(str(values.get("mesh", "")))
        values = {**values, "partitioner": "rcb" if sliced else FIELDS["partitioner"].default}
    try:  # names and types: messages name fields without groups
        convert(dict(values), _FLAT, where=where)
    except InputError as error:
        raise _wrong_value(values, where) or error from None
    stored = {
        group: {FIELDS[name].stored: value for name, value in given.items()}
        for group, given in _grouped(values).items()
    }
    return convert(stored, Case, where=where)


def _wrong_value(values: Mapping[str, Any], where: str) -> InputError | None:
    """The error for the first field whose value has another type; a file's says less."""
    wrong = (n for n, value in values.items() if n in FIELDS and not FIELDS[n].allows(value))
    name = next(wrong, None)
    return refused_value(where, name, values[name]) if name else None


def refused_value(where: str, name: str, value: Any) -> InputError:
    """The error for a value of another type; one about text shows how numbers are written as such."""
    parts = value if isinstance(value, list | tuple) else [value]
    numbers = FIELDS[name].takes == TEXT and all(type(part) in (int, float) for part in parts)
    example = f', as in "{",".join(map(str, parts))}"' if numbers else ""
    return InputError(f"{where}: {name} = {as_typed(value)}: expected {FIELDS[name].takes}{example}")


def check(case: Case) -> None:
    """Raises ValueError naming the field, to which msgspec adds its place in the file."""
    _check_method(case)
    if case.method.device != CPU:
        _check_device(case)
    if case.placement.threads > 1:
        _check_threads(case)
    if case.method.exchange == "blocking":
        _check_blocking(case)
    if case.balancing.balance:
        _check_balance(case)
    elif case.balancing.drain or case.synthetic.emulate_change or case.synthetic.hot_spot:
        raise ValueError("drain, emulate_change, hot_spot: expected a policy, as in balance = 'amortised'")
    _check_numbers(case)


def _check_method(case: Case) -> None:
    if line := mismatch(case.method):
        raise ValueError(line)
    if case.method.petsc_options and case.method.solver != "petsc":
        raise ValueError("petsc_options: expected solver = 'petsc'")


def _spelt(case: Case) -> str:
    try:
        return device_text(case.devices)
    except InputError as error:
        raise ValueError(str(error)) from None


def _check_device(case: Case) -> None:
    if line := mismatch_device(case.method):
        raise ValueError(f"device '{case.method.device}' with {line}")
    if case.balancing.balance:
        raise ValueError(f"device '{case.method.device}' with balance: expected no balance")


def _check_threads(case: Case) -> None:
    threads = f"threads = {case.placement.threads}"
    if line := mismatch_threads(case.method):
        raise ValueError(f"{threads} with {line}")
    if case.method.device != CPU:
        raise ValueError(f"{threads} with device '{case.method.device}': expected {CPU}")
    if case.balancing.balance:
        raise ValueError(f"{threads} with balance: expected no balance")
    if case.emulated:
        raise ValueError(f"{threads} with emulated speeds: expected 1")


def _check_blocking(case: Case) -> None:
    if case.method.overlap:
        raise ValueError("exchange 'blocking' overlaps nothing: expected overlap = false")
    if line := mismatch_blocking(case.method):
        raise ValueError(f"exchange 'blocking' with {line}")
    if case.balancing.balance:
        raise ValueError("exchange 'blocking' with balance: expected no balance")


def _check_balance(case: Case) -> None:
    b = case.balancing
    if b.balance not in POLICIES and plugin("policies", b.balance) is None:
        expected = f"{', '.join(POLICIES)}, or one of an installed package"
        raise ValueError(f"balance = '{b.balance}': expected one of {expected}")
    if line := mismatch_balance(case.method):
        raise ValueError(f"balance with {line}")


def _check_numbers(case: Case) -> None:
    for name, value in case.flat().items():
        if limit := FIELDS[name].option.expected(value, FIELDS[name].default):
            raise ValueError(f"{name} = {value}: expected {limit}")
    if case.stop.tolerance_kind == "relative" and case.stop.tolerance >= 1:
        raise ValueError(
            f"tolerance = {case.stop.tolerance:g} relative to the load: expected a number below 1"
        )
