"""A run of a small program from its settings: predicted if
there is a model, run, recorded."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import msgspec

from fembench.base.units import plural
from fembench.launch.scratch import occupied, reserved
from fembench.records.profile import load_profile
from fembench_studies.programs import compared_messages, real_messages
from fembench_studies.programs.cases import case_of, is_farm, other_speed, predicted
from fembench_studies.programs.job import launch
from fembench_studies.programs.record import AppRecord, load_app, save_app
from fembench_studies.programs.settings import ProgramSettings

MOST_CHANGE = 0.15  # of the time of a unit of work, relative, since the calibration


@dataclass(frozen=True)
class ProgramPlace:
    """The hosts of a program, and the folder of its record."""

    folder: Path  # of the records
    output: str = ""  # the record's file; "": in the folder, by its id
    hostfile: str = ""
    command: str = ""  # as typed, for the record

    def path(self, id: str) -> Path:
        """The file of a record."""
        return Path(self.output) if self.output else self.folder / f"{id}.json"


def stem_of(program: str) -> str:
    """A program's name, or that of its file, as the beginning of a record's id."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", Path(program).stem).strip("-") or "own"


def run_program(
    settings: ProgramSettings,
    place: ProgramPlace,
    *,
    tell: Callable[[str], None],
    model: str = "",
    calibrate: bool = False,
) -> tuple[AppRecord, Path]:
    """(record, its file) of a run or a calibration.

    `model`: the calibration that predicts the run.

    Raises InputError, or RunFailedError if the job ends without a record.
    """
    calibration = load_app(model) if model else None
    case = case_of(settings, calibration)
    before = predicted(case, calibration) if calibration and not calibrate else None
    if before:
        tell(f"predicted: {before.low:.4g} to {before.high:.4g} s ({before.method})")
    stem = f"{stem_of(case.program)}-p{case.ranks}"
    with occupied(place.folder, shared=True), reserved(place.folder, stem) as id:
        record = launch(
            case,
            id=id,
            scratch=place.folder,
            command=place.command,
            hostfile=place.hostfile,
            predicted=before,
            calibrate=settings.samples if calibrate else 0,
        )
        record = msgspec.structs.replace(record, invalid=untested(record, calibration))
        save_app(record, place.path(id))
    return record, place.path(id)


def untested(record: AppRecord, calibration: AppRecord | None) -> str:
    """Why a run tests no prediction; "" if it does, or if there is none."""
    if calibration is None or record.predicted is None:
        return ""
    if record.environment.synthetic:
        return other_speed(record, calibration, MOST_CHANGE)
    return _sharing(record) or _otherwise(record, calibration)


def _sharing(record: AppRecord) -> str:
    """A host on which more ranks compute than it has cores."""
    case, environment = record.case, record.environment
    computing = range(1, case.ranks) if is_farm(case.program) else sorted(set(case.host))
    for k, host in enumerate(environment.hosts):
        here = sum(environment.rank_host[rank] == k for rank in computing)
        if here > host.cores:
            return (
                f"{plural(here, 'rank')} compute on the {plural(host.cores, 'core')} of {host.name}; the "
                "prediction has a core for each. Use fewer ranks, or more hosts"
            )
    return ""


def _otherwise(record: AppRecord, calibration: AppRecord) -> str:
    """The change of the machine since its calibration, if it
    is larger than MOST_CHANGE."""
    if not (record.pace and calibration.pace):
        return ""
    changed = median(record.pace) / median(calibration.pace)
    if 1 / (1 + MOST_CHANGE) <= changed <= 1 + MOST_CHANGE:
        return ""
    return (
        f"a unit of work takes {changed:.2f} times as long as when {calibration.id} was calibrated; "
        "calibrate again"
    )


def run_with_network(
    settings: ProgramSettings,
    machine: str,
    calls: real_messages.Calls,
    place: ProgramPlace,
    *,
    tell: Callable[[str], None],
    model: str = "",
) -> tuple[AppRecord, str, bool, Path]:
    """(record, text, whether it confirms that, its file) of a ring, fork
    or join with real messages.

    `machine`: file of the profile whose network predicts them. Raises
    InputError or RunFailedError.
    """
    profile = load_profile(machine)
    case = real_messages.case_of_messages(
        settings.program,
        settings.ranks,
        calls,
        n_bytes=settings.n_bytes,
        tasks=settings.tasks,
        units=settings.size,
        repetitions=settings.repetitions,
    )
    with occupied(place.folder, shared=True), reserved(place.folder, f"{case.program}-p{case.ranks}") as id:
        record = real_messages.predicted_run(
            case,
            profile,
            id=id,
            scratch=place.folder,
            source=machine,
            calibration=load_app(model) if model else None,
            samples=settings.samples,
            command=place.command,
            hostfile=place.hostfile,
            say=tell,
        )
        save_app(record, place.path(id))
    found = compared_messages.compared(record, profile)
    return record, compared_messages.as_text(record, found), all(one.kept for one in found), place.path(id)
