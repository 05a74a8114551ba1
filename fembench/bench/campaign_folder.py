"""The files of a campaign: campaign.toml, runs/<id>.json or <id>.failed.json, report/.

A run that has a record is repeated only if its mesh or problem has changed; the old
record moves to runs/superseded/ unless the new input is refused. A failed run is
repeated when the campaign is started again, as is one for which there was no time.
"""

import contextlib
import functools
from collections.abc import Iterable, Sequence
from pathlib import Path

from fembench.base.config import from_toml, read_json, read_text
from fembench.base.errors import InputError
from fembench.base.files import write_atomic, writing
from fembench.bench.campaign_file import Campaign, CampaignRun, expand, run_id
from fembench.bench.campaign_hosts import CampaignHosts
from fembench.bench.inputs import Inputs, Stamp, stamp_of
from fembench.launch.allocation import hosts_asked
from fembench.launch.run_job import JobEnd
from fembench.records.case import Case
from fembench.records.record import NO_TIME, NOT_RECORDED, SCHEMA, Failure, Record, now_utc
from fembench.records.store import load, load_failure, record_paths, save


class Folder:
    """The files of one campaign."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.runs = path / "runs"
        self.inputs = Inputs()
        self._read: dict[Path, tuple[Stamp | None, Record]] = {}

    def prepare(self, source: Path, there: CampaignHosts | None = None) -> None:
        """Make the folder for the campaign of a file: see `hold`."""
        self.hold(read_text(source), str(source), there)

    def hold(
        self,
        text: str,
        where: str,
        there: CampaignHosts | None = None,
        *,
        grown: bool = False,
    ) -> None:
        """Make the folder, or `check` that it is of this campaign. Raises InputError."""
        self.check(text, where, there, grown=grown)
        self.write(text)
        with writing(self.runs):
            self.runs.mkdir(exist_ok=True)

    def check(
        self, text: str, where: str, there: CampaignHosts | None = None, *, grown: bool = False
    ) -> None:
        """Raises InputError if the folder belongs to another campaign.

        `where`: of the text. `there`: the hosts that the words of both campaigns are
        resolved against; None: those of this job. `grown`: the campaign may have more
        cases than before, or fewer.
        """
        kept = self.path / "campaign.toml"
        if kept.exists() and not _same_runs(read_text(kept), text, there, grown):
            raise InputError(
                f"{kept} differs from {where}: this folder holds another campaign; "
                "give another name or results folder"
            )

    def write(self, text: str) -> None:
        """Keep the text as that of the campaign."""
        write_atomic(self.path / "campaign.toml", text)

    def record(self, run: CampaignRun) -> Record | None:
        """The record of a run, if one exists for the same case, mesh and problem."""
        found = self._found(run)
        return found if found is not None and not self.inputs.changed(found) else None

    def records(self) -> list[Record]:
        """All records in the folder; files that cannot be read are passed over."""
        found = []
        for path in record_paths(self.path) if self.runs.is_dir() else ():
            with contextlib.suppress(InputError):  # damaged files are reported elsewhere
                found.append(self._load(path))
        return found

    def changed(self, run: CampaignRun) -> str:
        """The input that has changed since the run was recorded; '' for none."""
        found = self._found(run)
        return "" if found is None else self.inputs.changed(found)

    def _found(self, run: CampaignRun) -> Record | None:
        """The record of a run, even if its inputs have changed; None if it is damaged."""
        path = self._path(run)
        try:
            found = self._load(path) if path.exists() else None
        except InputError:
            if _is_json(path):
                raise
            return None
        return found if found is not None and found.case == run.case else None

    def _load(self, path: Path) -> Record:
        """A record; its file is decoded again only if it changes."""
        stamp = stamp_of(path)
        if path not in self._read or self._read[path][0] != stamp:
            self._read[path] = stamp, load(path)
        return self._read[path][1]

    def _path(self, run: CampaignRun) -> Path:
        """The path of a run's record, whether or not it exists."""
        path = self.runs / f"{run.id}.json"
        return path if path.exists() else self._by_case.get((run.case, run.repetition), path)

    @functools.cached_property
    def _by_case(self) -> dict[tuple[Case, int], Path]:
        """Records by case and repetition, also of files named by an earlier version."""
        found = {}
        for path in record_paths(self.path):
            with contextlib.suppress(InputError):
                record = self._load(path)
                repetition = path.stem.rpartition("-r")[2]
                if repetition.isdigit():
                    found[record.case, int(repetition)] = path
        return found

    def damaged(self) -> list[Path]:
        """Files that are not valid JSON, such as truncated ones: their runs are repeated."""
        return [path for path in sorted(self.runs.glob("[!.]*.json")) if not _is_json(path)]

    def set_damaged_aside(self) -> None:
        """Move damaged files to superseded/."""
        for path in self.damaged():
            self._supersede(path, f"{path.stem}.damaged.{now_utc()}.json")

    def on_other_hosts(self, runs: Sequence[CampaignRun], hostfile: str) -> list[Record]:
        """Records made with another host file, or on other hosts of a batch system."""
        asked = hosts_asked(hostfile)
        found = [record for run in runs if (record := self.record(run))]
        return [r for r in found if r.environment.hosts_asked not in (asked, NOT_RECORDED)]

    def _supersede(self, path: Path, name: str) -> None:
        old = self.runs / "superseded"
        old.mkdir(exist_ok=True)
        path.rename(old / name)

    def keep(self, run: CampaignRun, outcome: JobEnd[Record]) -> None:
        """Save the outcome of a run; refused input does not replace an earlier record."""
        failed = self.runs / f"{run.id}.failed.json"
        found = self._found(run)
        if found is not None and outcome.kind != "input":
            self._supersede(self._path(run), f"{run.id}.{found.created}.json")
        if outcome.result is not None:
            save(outcome.result, self.runs)
            failed.unlink(missing_ok=True)
            return
        save(failure_of(run.id, run.case, outcome), self.runs)

    def leave_out(self, cases: Iterable[Case], why: str) -> None:
        """Keep a file per case without time for it; delete those of an earlier start."""
        for path in self.runs.glob("[!.]*.failed.json"):
            with contextlib.suppress(InputError):
                if load_failure(path).kind == NO_TIME:
                    path.unlink()
        for case in cases:
            save(failure_of(run_id(case, 1), case, JobEnd(None, NO_TIME, why, 0, "")), self.runs)


def _is_json(path: Path) -> bool:
    try:
        read_json(path, object)
    except InputError:
        return False
    return True


def _same_runs(before: str, now: str, there: CampaignHosts | None, grown: bool) -> bool:
    """Whether two campaign files describe the same runs, whatever comments and timeout.

    `grown`: there may be more runs now, or fewer, if a record was lost.
    """
    if before == now:
        return True
    try:
        old, new = (from_toml(text, Campaign, where="campaign") for text in (before, now))
        these, those = ({run.id for run in expand(one, "campaign", there)} for one in (old, new))
    except InputError:
        return False
    return old.name == new.name and (these == those or (grown and (these < those or those < these)))


def failure_of(id: str, case: Case, outcome: JobEnd[Record]) -> Failure:
    """The file kept for a run without a record."""
    return Failure(
        schema=SCHEMA,
        id=id,
        created=now_utc(),
        case=case,
        kind=outcome.kind,
        message=outcome.message,
        exit_status=outcome.exit_status,
        output=outcome.output,
    )
