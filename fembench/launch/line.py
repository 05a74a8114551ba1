"""The line that starts the ranks of a job: the launcher, its options, and the host files they name."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fembench.base.errors import InputError
from fembench.launch.hostfile import HostSlots
from fembench.launch.job_hosts import merged
from fembench.launch.launchers import Launcher
from fembench.launch.plugin import own_plugin

HOSTS = "hosts"  # host files that a job gets, in the folder of the job: hosts, hosts-1, …


@dataclass(frozen=True)
class JobLine:
    """What starts the ranks of a job."""

    launcher: Launcher
    # the launcher with its options; a part more for each further component
    parts: tuple[tuple[str, ...], ...]
    host_files: tuple[str, ...] = ()  # [part] text of its host file; {file} in the part stands for its path
    crowded: bool = False  # more ranks than cores
    loose: bool = False  # ranks are not bound
    plugin: str = ""  # of srun, if fembench chose it

    @property
    def program(self) -> str:
        """The path of the launcher."""
        return self.parts[0][0]

    def of(self, program: Sequence[str], folder: Path) -> list[str]:
        """The whole line for a program; host files are written into the folder."""
        line: list[str] = []
        for k, part in enumerate(self.parts):
            path = folder.resolve() / (f"{HOSTS}-{k}" if k else HOSTS)
            if self.host_files:
                self._check_path(path)
                path.write_text(self.host_files[k], encoding="utf-8")
            line += [":"] if line else []
            line += [*(word.replace("{file}", str(path)) for word in part), *program]
        return line

    def _check_path(self, path: Path) -> None:
        cut = next((c for c in ":," if c in str(path)), "")
        if self.launcher.name == "openmpi" and cut:
            raise InputError(f"{path.parent}: Open MPI reads no host file with '{cut}' in its path")

    def __str__(self) -> str:
        """As a record keeps it."""
        words = " : ".join(" ".join(part) for part in self.parts).replace("{file}", HOSTS)
        return Path(self.program).name + words.removeprefix(self.program)


def one_part(
    program: str,
    launcher: Launcher,
    ranks: int,
    select: Sequence[str],
    words: Sequence[str],
    options: Sequence[str],
) -> tuple[str, ...]:
    """The launcher with its options."""
    count = [word.replace("{ranks}", str(ranks)) for word in launcher.ranks]
    own = own_plugin(program, launcher, options)
    meet = [f"--mpi={own}"] if own else []
    return (program, *launcher.first, *select, *meet, *words, *options, *count)


def selecting(launcher: Launcher, runs: Sequence[HostSlots]) -> list[str]:
    """The options that select hosts."""
    hosts = merged(runs)
    meaning = {
        "{names}": ",".join(host.name for host in hosts),
        "{per_host}": str(max(host.slots for host in hosts)),
        "{n_hosts}": str(len(hosts)),
        "{group}": str(runs[0].component),
    }
    found = list(launcher.hosts)
    for name, value in meaning.items():
        found = [word.replace(name, value) for word in found]
    return found
