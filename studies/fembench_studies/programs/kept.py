"""Runs of small programs in a folder; runs that have a record
which serves are not repeated."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from fembench_studies.programs.cases import case_of, predicted
from fembench_studies.programs.job import launch
from fembench_studies.programs.record import AppCase, AppRecord, load_app, save_app
from fembench_studies.programs.settings import ProgramSettings


@dataclass(frozen=True)
class ProgramRuns:
    """A folder of records. `only_kept`: missing ones are not measured."""

    folder: Path
    only_kept: bool = False

    def kept(
        self,
        name: str,
        case: AppCase,
        make: Callable[[], AppRecord],
        serves: Callable[[AppRecord], bool] = lambda record: True,
    ) -> AppRecord | None:
        """The record of that name and case; if missing or not serving, it
        is made, unless `only_kept`, which takes any. A case of size 0
        chooses its size as it runs."""
        path = self.folder / f"{name}.json"
        record = load_app(path) if path.exists() else None
        if self.only_kept:
            return record
        if record and record.case != msgspec.structs.replace(case, size=case.size or record.case.size):
            record = None
        if record is None or not serves(record):
            record = make()
            save_app(record, path)
        return record

    def calibration(self, name: str, settings: ProgramSettings) -> AppRecord | None:
        """The calibration of a program."""
        case = case_of(settings, None)
        return self.kept(
            name, case, lambda: launch(case, id=name, scratch=self.folder, calibrate=settings.samples)
        )

    def run(self, name: str, case: AppCase, calibration: AppRecord) -> AppRecord | None:
        """A run, predicted from the calibration before it starts."""

        def make() -> AppRecord:
            before = predicted(case, calibration)
            return launch(case, id=name, scratch=self.folder, predicted=before)

        return self.kept(name, case, make)
