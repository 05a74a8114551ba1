"""Runs of small programs kept in a folder; existing records are not measured again."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fembench.studies.programs.cases import both, case_of
from fembench.studies.programs.launch import launch
from fembench.studies.programs.record import AppCase, AppRecord, load_app, save_app
from fembench.studies.programs.settings import ProgramSettings


def kept_record(path: Path, case: AppCase, *, whatever: bool = False) -> AppRecord | None:
    """The record in a file, or None; `whatever` also accepts the record of another case."""
    record = load_app(path) if path.exists() else None
    return record if record is None or whatever or record.case == case else None


@dataclass(frozen=True)
class ProgramRuns:
    """The folder of the records, and whether missing ones are measured."""

    folder: Path
    only_kept: bool = False

    def kept(self, name: str, case: AppCase, make: Callable[[], AppRecord]) -> AppRecord | None:
        """The record of that name and case; a missing one is made, unless `only_kept`."""
        path = self.folder / f"{name}.json"
        record = kept_record(path, case, whatever=self.only_kept)
        if record is None and not self.only_kept:
            record = make()
            save_app(record, path)
        return record

    def calibration(self, name: str, settings: ProgramSettings) -> AppRecord | None:
        """Samples of the program's operations."""
        case = case_of(settings, None)
        return self.kept(
            name, case, lambda: launch(case, id=name, scratch=self.folder, calibrate=settings.samples)
        )

    def run(
        self, name: str, case: AppCase, calibration: AppRecord, settings: ProgramSettings
    ) -> AppRecord | None:
        """A run that is predicted from the calibration before it starts."""

        def make() -> AppRecord:
            closed, graph = both(case, calibration, settings)
            return launch(case, id=name, scratch=self.folder, predicted=closed, simulated=graph)

        return self.kept(name, case, make)
