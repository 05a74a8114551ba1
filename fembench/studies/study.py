"""A study as data: its source, its experiments, and the function that measures and shows them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fembench.base.errors import InputError
from fembench.records.record import Failure, Record
from fembench.report.page import Section
from fembench.report.table import Table
from fembench.studies.attempts import Attempts
from fembench.studies.sentences import SENTENCES


@dataclass(frozen=True)
class StudyExperiment:
    """One experiment of a study."""

    name: str
    sentence: str  # what is measured, and the tables of the source that it repeats
    look: str = ""  # what to look at in the page


@dataclass(frozen=True)
class HostsAsked:
    """The hosts to run on, as typed: NAME or NAME:CORES. None at all: hosts are emulated."""

    fast: tuple[str, ...] = ()
    slow: tuple[str, ...] = ()
    hostfile: str = ""
    slow_speed: float = 0.0  # SYNTHETIC: of a slow host, relative to a fast one; 0: the study's own


@dataclass(frozen=True)
class StudyRequest:
    """What of a study is to be run, where, and with how much effort."""

    folder: Path
    quick: bool
    cores: int  # that ranks started here may use
    only: tuple[str, ...] = ()  # experiments; (): all
    only_kept: bool = False  # measure nothing; show what there is
    command: str = ""  # as typed, for the records
    hosts: HostsAsked = HostsAsked()

    def wants(self, name: str) -> bool:
        """Whether an experiment is among those asked for."""
        return wanted(name, self.only)


@dataclass(frozen=True)
class StudyOutcome:
    """What a study found, ready for its page."""

    sections: Sequence[Section]
    findings: Sequence[Table]  # shown in the terminal too
    valid: bool = True
    synthetic: Sequence[str] = ()  # in which respects times were made up
    records: Sequence[Record] = ()  # of FEM runs, with a verdict each
    failures: Sequence[Failure] = ()
    fields: Mapping[str, Path] = field(default_factory=dict)  # record id -> its file of displacements


@dataclass(frozen=True)
class Study:
    """A source, and its experiments."""

    name: str
    title: str  # of its page
    source: str  # author, year, what it is
    did: str  # what the source did
    again: str  # what is measured again, and how
    takes: str  # how long
    look: str  # what to look at in the page
    experiments: tuple[StudyExperiment, ...]
    measure: Callable[[StudyRequest, Attempts], StudyOutcome | None]  # None: nothing was measured yet
    folders: tuple[str, ...] = (
        ".",
        "runs",
    )  # in the study's folder, that nobody else may write into meanwhile

    @property
    def sentence(self) -> str:
        """What it is about."""
        return SENTENCES[self.name]

    @property
    def names(self) -> tuple[str, ...]:
        """Of its experiments."""
        return tuple(e.name for e in self.experiments)

    def chosen(self, text: str) -> tuple[str, ...]:
        """The experiments in 'E7,E9', in the study's order; () for '', which means all. Raises InputError."""
        asked = [name.strip() for name in text.split(",") if name.strip()]
        unknown = next((name for name in asked if name not in self.names), None)
        if unknown is not None or bool(text) != bool(asked):
            known = ", ".join(self.names)
            raise InputError(f"{self.name}: unknown experiment '{unknown or text}'; expected some of {known}")
        return tuple(name for name in self.names if name in asked)


def wanted(name: str, only: Sequence[str]) -> bool:
    """Whether an experiment is among those asked for; () means all."""
    return not only or name in only


def report_name(only: Sequence[str]) -> str:
    """The folder of the page: 'report', or another for a page of some experiments."""
    return "-".join(("report", *only))
