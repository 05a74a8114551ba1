"""The runs of `fembench tune`, records kept, on all hosts of the job or without one."""

from dataclasses import dataclass
from pathlib import Path

from fembench.base.files import write_atomic
from fembench.base.progress import progress, working
from fembench.bench.campaign_file import run_id
from fembench.bench.duration import about
from fembench.launch.allocation import allocation, is_open
from fembench.launch.case_job import launch
from fembench.launch.hosts import HostSlots, hostfile_text, same_host
from fembench.launch.scratch import reserved
from fembench.records.case import Case
from fembench.records.record import Record
from fembench.records.store import save
from fembench.weights.observe import run_seconds


@dataclass(frozen=True)
class TuneRuns:
    """Where the runs of one tuning take place, and where their records are kept."""

    folder: Path  # of the records
    hostfile: str
    timeout: float  # seconds of a run
    command: str  # what the records say was typed

    def __call__(self, case: Case, word: str, without: str = "") -> Record:
        """Run a case, on all hosts but `without`. Raises FembenchError without a record.

        word: labels the run in the line of progress.
        """
        stem = run_id(case, 1).rsplit("-r", 1)[0]
        with working(f"tune: {word}") as now, reserved(self.folder, stem) as id:
            now.tell(about(case, self.folder))
            record = launch(
                case,
                id=id,
                command=self.command,
                scratch=self.folder,
                hostfile=self._hosts_but(without) if without else self.hostfile,
                timeout=self.timeout,
                tell=now.tell,
            ).content()
            save(record, self.folder)
        progress(f"tune: {word}: {run_seconds([record])[0]:.4g} s per set")
        return record

    def can_do_without(self, host: str) -> bool:
        """Whether the job has this host, so that ranks can be started on all others."""
        return len(self._others(host)) < len(self._others(""))

    def _hosts_but(self, left_out: str) -> str:
        """The path of a host file that omits one host."""
        rest = self._others(left_out)
        file = self.folder / "others.hosts"
        write_atomic(file, hostfile_text((host.name, host.slots) for host in rest))
        return str(file)

    def _others(self, left_out: str) -> list[HostSlots]:
        """The hosts of the job but one ("": all), in rank order; [] on this machine."""
        job = allocation(self.hostfile)
        hosts = [] if is_open(job) else job.order or job.hosts
        return [host for host in hosts if not same_host(host.name, left_out)]
