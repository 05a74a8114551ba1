"""Measure the cases that have no record yet: one folder per
campaign, resumable at any point."""

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from fembench.base.files import write_atomic
from fembench.bench.campaign import Done, execute
from fembench.bench.campaign_file import Campaign, CampaignRun, run_id
from fembench.bench.campaign_folder import Folder
from fembench.host.host import own_cores
from fembench.launch.launchers import find_launcher, recognised
from fembench.launch.scratch import occupied
from fembench.records.case import Case
from fembench.records.record import Record
from fembench_studies.thesis_004.machines import confinement, host_file
from fembench_studies.thesis_004.plan import CORES, StudyPlan, Want, Where

SHARING = {  # launcher options to run more tasks than cores on a host; each task confines itself
    "openmpi": ("--map-by", "slot:OVERSUBSCRIBE", "--bind-to", "none"),
    "mpich": ("-bind-to", "none"),
    "srun": ("--overcommit", "--cpu-bind=none"),
}
YIELD = {"OMPI_MCA_mpi_yield_when_idle": "1"}  # for tasks that share a core


class StudyFolder:
    """The folder of a study, and its records."""

    def __init__(self, path: Path, plan: StudyPlan, command: str) -> None:
        self.path, self.plan, self.command = path, plan, command
        self.records: dict[Want, list[Record]] = {}
        self.failed: list[str] = []
        self._folders: dict[Where, Folder] = {}

    def folder(self, where: Where) -> Folder:
        """The campaign's folder, created if missing. Raises InputError if it
        belongs to another campaign."""
        if where not in self._folders:
            folder = Folder(self.path / where)
            with tempfile.TemporaryDirectory() as scratch:
                source = Path(scratch, "campaign.toml")
                source.write_text(self._description(where))
                folder.prepare(source)
            self._folders[where] = folder
        return self._folders[where]

    def _description(self, where: Where) -> str:
        """campaign.toml with the cases known in advance, so that two plans
        never mix in one folder."""
        cases = [want.case for want in self.plan.wants() if want.where == where]
        head = f'name = "{where}"\nrepetitions = {self.plan.effort.repetitions}\n'
        return head + "".join(map(_toml, cases))

    def missing(self, wants: Sequence[Want]) -> int:
        """Number of runs without a record that is not INVALID."""
        found = [self.folder(w.where).record(run) for w in wants for run in self._runs(w)]
        return sum(record is None or record.verdict.status == "INVALID" for record in found)

    def _runs(self, want: Want) -> list[CampaignRun]:
        times = range(1, self.plan.repetitions(want) + 1)
        return [CampaignRun(run_id(want.case, r), want.case, r) for r in times]

    def measure(
        self, wants: Sequence[Want], ended: Callable[[Done], None], *, only_kept: bool = False
    ) -> None:
        """Run what has no record or an INVALID one, unless
        `only_kept`; then load all records."""
        for group in [] if only_kept else _groups(wants):
            first = group[0]
            folder = self.folder(first.where)
            runs = [run for w in sorted(group, key=lambda w: w.case.placement.ranks) for run in self._runs(w)]
            real = bool(first.placement) and not self.plan.machines.emulated
            with occupied(folder.runs), _environment(first, real) as hostfile:
                for done in execute(
                    Campaign(name=first.where, cases=({},), timeout=self.plan.effort.timeout),
                    runs,
                    folder,
                    command=self.command,
                    hostfile=hostfile,
                    mpi_options=SHARING.get(recognised(find_launcher()).name, ()) if real else (),
                    cores=confinement(first.placement) if real else (),
                    again=True,
                ):
                    self._keep(done)
                    ended(done)
        for want in wants:
            found = (self.folder(want.where).record(run) for run in self._runs(want))
            self.records[want] = [r for r in found if r is not None]

    def invalid(self) -> list[str]:
        """Why records are INVALID, one line each."""
        every = (r for group in self.records.values() for r in group)
        return [f"{r.id}: INVALID: {r.verdict.reason}" for r in every if r.verdict.status == "INVALID"]

    def _keep(self, done: Done) -> None:
        if done.record is None and done.outcome is not None:
            self.failed.append(f"{done.run.id}: {done.outcome.message}")


def _groups(wants: Sequence[Want]) -> list[list[Want]]:
    """Cases grouped by their environment, in the order of `wants`."""
    groups: dict[object, list[Want]] = {}
    for want in wants:
        key = (
            want.where,
            () if want.case.synthetic.dilate > 1 or want.case.synthetic.emulate else want.placement,
        )
        groups.setdefault(key, []).append(want)
    return list(groups.values())


@contextlib.contextmanager
def _environment(want: Want, real: bool) -> Iterator[str]:
    """Set cores and variables for a group of runs; yields the name of
    their host file, "" for none."""
    kept, mask = dict(os.environ), os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
    cores = 0 if real else CORES.get(want.where, 0)
    try:
        if cores and mask:
            os.sched_setaffinity(0, own_cores(sorted(mask))[:cores])
        os.environ.update(YIELD if real else {})
        with tempfile.TemporaryDirectory() as scratch:
            path = Path(scratch, "hosts")
            if real:
                write_atomic(path, host_file(want.placement))
            yield str(path) if real else ""
    finally:
        os.environ.clear()
        os.environ.update(kept)
        if cores and mask:
            os.sched_setaffinity(0, mask)


def _toml(case: Case) -> str:
    """A [[cases]] entry with all values that are not defaults."""
    changed = {"mesh": case.question.mesh} | case.said()
    return "\n[[cases]]\n" + "".join(f"{k} = {_literal(v)}\n" for k, v in changed.items())


def _literal(value: object) -> str:
    return msgspec.json.encode(value).decode()
