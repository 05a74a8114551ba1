"""A study as data: its source, its experiments, and the module
that measures and shows them."""

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from fembench.errors import InputError
from fembench.records.record import Failure, Record
from fembench.report.page import Section
from fembench.report.table import Table
from fembench_studies.attempts import Attempts
from fembench_studies.claims import StudyClaim, all_kept, claims_table
from fembench_studies.sentences import SENTENCES


class StudyExperiment(NamedTuple):
    """One experiment of a study."""

    name: str
    sentence: str  # what is measured, and which tables of the source it repeats
    look: str = ""  # what to look at in the page


@dataclass(frozen=True)
class HostsAsked:
    """The hosts to run on, as typed: NAME or NAME:CORES.
    Without any, hosts are emulated."""

    fast: tuple[str, ...] = ()
    slow: tuple[str, ...] = ()


@dataclass(frozen=True)
class StudyRequest:
    """Which experiments to run, where, and with how much effort."""

    folder: Path
    quick: bool
    cores: int  # available to ranks started here
    only: tuple[str, ...] = ()  # experiments; (): all
    only_kept: bool = False  # measure nothing; show existing records
    command: str = ""  # as typed, for the records
    hosts: HostsAsked = HostsAsked()

    def wants(self, name: str) -> bool:
        """Whether an experiment is requested."""
        return wanted(name, self.only)


@dataclass(frozen=True)
class StudyOutcome:
    """What a study found, ready for its page."""

    sections: Sequence[Section]
    findings: Sequence[Table]  # shown in the terminal too
    claims: Sequence[StudyClaim] = ()  # limits beside what was found: first on the page and in the terminal
    valid: bool = True  # of the measurements that no claim judges
    synthetic: Sequence[str] = ()  # what was emulated or simulated
    records: Sequence[Record] = ()  # of FEM runs, each with a verdict
    failures: Sequence[Failure] = ()
    fields: Mapping[str, Path] = field(default_factory=dict)  # record id -> file of its displacements

    @property
    def good(self) -> bool:
        """Whether all measurements are valid, and all claims are kept."""
        return self.valid and all_kept(self.claims)

    @property
    def judged(self) -> list[Table]:
        """The table of claims, if there are any."""
        return [claims_table(self.claims, bool(self.synthetic))] if self.claims else []


class Study(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A source, and its experiments, from studies.toml."""

    name: str = ""  # of its table
    title: str  # of its page
    source: str  # author, year, what it is
    did: str  # what the source did
    again: str  # what is measured again, and how
    takes: str  # how long
    look: str  # what to look at in the page
    module: str  # which measures and shows the experiments
    folders: tuple[str, ...] = (".", "runs")  # locked during a run; relative to the study's folder
    each: str = ""  # what to look at in the page of any experiment
    experiments: tuple[StudyExperiment, ...]

    @property
    def measure(self) -> Callable[[StudyRequest, Attempts], StudyOutcome | None]:
        """Measures and shows; None: nothing was measured yet.
        Only this imports the study."""
        made: Callable[[StudyRequest, Attempts], StudyOutcome | None]
        made = importlib.import_module(f"fembench_studies.{self.module}").measure
        return made

    @property
    def sentence(self) -> str:
        """The study in one sentence."""
        return SENTENCES[self.name]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its experiments."""
        return tuple(e.name for e in self.experiments)

    def chosen(self, text: str) -> tuple[str, ...]:
        """The experiments in 'E7,E9', in the study's order; () for '', which
        means all. Raises InputError."""
        asked = [name.strip() for name in text.split(",") if name.strip()]
        unknown = next((name for name in asked if name not in self.names), None)
        if unknown is not None or bool(text) != bool(asked):
            known = ", ".join(self.names)
            raise InputError(f"{self.name}: unknown experiment '{unknown or text}'; expected some of {known}")
        return tuple(name for name in self.names if name in asked)


def wanted(name: str, only: Sequence[str]) -> bool:
    """Whether an experiment is requested; () means all."""
    return not only or name in only


def report_name(only: Sequence[str]) -> str:
    """The folder of the page: 'report', or 'report-E7-E9' for a
    page of these experiments."""
    return "-".join(("report", *only))
