"""Virtual hosts for tests: whether this machine can have a lab, and a Slurm cluster made of one.

The cluster's hosts n1, n2 and n3 take two ranks each; n3 gets a quarter of the CPU time. `head` is the login
host. All hosts see the files of this machine. Slurm's daemons run inside the lab, so `lab.down` ends them and
whatever they have started. No file in /etc is read or written.
"""

import contextlib
import os
import shlex
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from fembench.base.errors import InputError
from fembench.synthetic import lab, lab_groups
from fembench.synthetic.lab_cluster import HEAD

PROGRAMS = {"slurmctld": "slurm-wlm", "slurmd": "slurm-wlm", "munged": "munge"}  # -> Debian's package
HOSTS = {"n1": "fast", "n2": "fast", "n3": "slow"}  # -> feature
SLOTS = 2
SSH = """#!/bin/sh
while case $1 in -[lopi]) shift ;; -*) ;; *) false ;; esac; do shift; done
exec env -i HOME="$HOME" PATH=/usr/sbin:/usr/bin:/sbin:/bin {agent} "$@"
"""
PMIX = "/usr/lib/*/pmix2/lib"  # where Slurm looks for libpmix.so, a link that Debian has in libpmix-dev only
WITH_PMIX = """
for folder in {pmix}; do
    [ ! -e "$folder/libpmix.so.2" ] || mount -t overlay -o "lowerdir={links}:$folder" overlay "$folder"
done
exec "$@"
"""
ASLEEP = {  # hosts share their CPUs, so ranks that wait leave them to others (Open MPI 5, Intel MPI)
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_threads_pthreads_yield_strategy": "nanosleep",
    "OMPI_MCA_threads_pthreads_nanosleep_time": "20000",
    "I_MPI_WAIT_MODE": "1",
}


def why_no_lab():
    """Why no lab can be had here, or ''."""
    try:
        lab.require_root()
        trees = lab_groups.hierarchies()
    except InputError as error:
        return str(error)
    unwritable = [str(t.mount) for t in trees if not os.access(t.mount, os.W_OK)]
    if unwritable:
        return f"{unwritable[0]} is read-only"
    if len(lab_groups.usable_cpus(trees)) < 2:
        return "one CPU only"
    probe = ["unshare", "--net", "--uts", "--mount", "true"]
    done = subprocess.run(probe, capture_output=True, text=True)
    return done.stderr.strip() if done.returncode else ""


def why_no_slurm():
    """Why no Slurm cluster can be had here, or ''."""
    if reason := why_no_lab():
        return f"no lab here: {reason}"
    missing = [name for name in PROGRAMS if not shutil.which(name)]
    packages = " ".join(sorted({PROGRAMS[name] for name in missing}))
    return f"no Slurm here: no {missing[0]}; apt-get install {packages}" if missing else ""


@dataclass(frozen=True)
class Slurm:
    """A running cluster."""

    name: str
    home: Path  # what its daemons keep

    def start(self, *command, on=HEAD, cwd=None, **variables):
        """A command on a host, as in a login shell: the process."""
        line = [
            lab.FOLDER / self.name / "agent",
            on,
            shlex.join(map(str, ("sh", self.home / "pmix.sh", *command))),
        ]
        path = f"{self.home}/bin:{Path(sys.executable).parent}:/usr/sbin:/usr/bin:/sbin:/bin"
        shell = {"HOME": os.environ.get("HOME", "/root"), "LANG": "C.UTF-8", "PATH": path}
        environment = shell | {"SLURM_CONF": str(self.home / "slurm.conf")} | ASLEEP | variables
        return subprocess.Popen(
            line,
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    @contextlib.contextmanager
    def started(self, *command, on=HEAD, cwd=None, **variables):
        """A command on a host while it runs. After an exception nothing of it or of any job stays, and what
        ran is printed."""
        process = self.start(*command, on=on, cwd=cwd, **variables)
        try:
            yield process
        except BaseException:
            for host in (HEAD, *HOSTS):
                print(host, *map(_command_line, self.processes(host, "fembench")), sep="\n  ")
            process.kill()
            self.start("scancel", f"--user={os.getuid()}").communicate(timeout=20)
            raise
        finally:
            process.communicate()

    def run(self, *command, on=HEAD, cwd=None, timeout=120, **variables):
        """A command on a host to its end."""
        with self.started(*command, on=on, cwd=cwd, **variables) as process:
            out, err = process.communicate(timeout=timeout)
            return subprocess.CompletedProcess(command, process.returncode, out, err)

    def batch(self, *arguments, cwd, timeout=120, **variables):
        """A batch job to its end: what it printed."""
        done = self.run("sbatch", "--parsable", "--output=%j.log", *arguments, cwd=cwd, **variables)
        assert done.returncode == 0, done.stderr
        job, deadline = done.stdout.strip(), time.monotonic() + timeout
        while self.run("squeue", "--noheader", "--jobs", job).stdout.strip():
            assert time.monotonic() < deadline, (cwd / f"{job}.log").read_text()
            time.sleep(0.3)
        return (cwd / f"{job}.log").read_text()

    def processes(self, host, word):
        """IDs of the processes on a host whose command line contains the word."""
        groups = lab_groups.groups_of(self.name, lab_groups.hierarchies())
        ids = lab_groups.processes(next(group for group in groups if group.name == host))
        return [number for number in ids if word in _command_line(number)]


def _command_line(number):
    try:
        return Path(f"/proc/{number}/cmdline").read_text().replace("\0", " ")
    except OSError:  # it has ended
        return ""


@contextlib.contextmanager
def slurm_cluster(folder, name):
    """A Slurm cluster; `folder` for the description of its lab. Needs root."""
    cpus = list(lab_groups.usable_cpus(lab_groups.hierarchies()))[:SLOTS]
    tables = [f'[[hosts]]\nname = "{host}"\ncpus = {cpus}\n' for host in HOSTS]
    description = folder / "lab.toml"
    description.write_text(f'name = "{name}"\n{"".join(tables)}speed = 0.25\n')
    daemons = []
    try:
        state = lab.up(description)
        slurm = Slurm(name, lab.FOLDER / name / "slurm")
        _write_files(slurm, state.cluster)
        daemons += _daemons(slurm)
        _wait_for_hosts(slurm)
        yield slurm
    finally:
        lab.down(name)
        for daemon in daemons:
            daemon.communicate()


def _write_files(slurm, cluster):
    for folder in ("bin", "links", HEAD, *HOSTS):
        (slurm.home / folder).mkdir(parents=True)
    (slurm.home / "links" / "libpmix.so").symlink_to("libpmix.so.2")
    (slurm.home / "pmix.sh").write_text(WITH_PMIX.format(pmix=PMIX, links=slurm.home / "links"))
    for program, text in {
        "ssh": SSH.format(agent=lab.FOLDER / slurm.name / "agent"),
        "module": "#!/bin/sh\n",
    }.items():
        (slurm.home / "bin" / program).write_text(text)
        (slurm.home / "bin" / program).chmod(0o755)
    (slurm.home / "slurm.conf").write_text(_configuration(slurm.home, cluster))
    key = os.open(slurm.home / "munge.key", os.O_CREAT | os.O_WRONLY, 0o600)
    os.write(key, os.urandom(1024))
    os.close(key)


def _configuration(home, cluster):
    """The text of slurm.conf."""
    address = [cluster.address(index).split("/")[0] for index in range(len(HOSTS) + 1)]
    nodes = [
        f"NodeName={host} NodeAddr={address[index]} CPUs={SLOTS} Feature={feature}\n"
        for index, (host, feature) in enumerate(HOSTS.items())
    ]
    return f"""
ClusterName={cluster.name}
SlurmctldHost={HEAD}({address[-1]})
SlurmUser=root
AuthInfo=socket={home}/munge.socket
StateSaveLocation={home}/{HEAD}
SlurmctldPidFile={home}/{HEAD}/pid
SlurmctldLogFile={home}/{HEAD}/log
SlurmdSpoolDir={home}/%n
SlurmdPidFile={home}/%n/pid
SlurmdLogFile={home}/%n/log
TmpFS={home}/%n
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/affinity
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=bf_interval=1
ReturnToService=2
KillWait=2
{"".join(nodes)}PartitionName=all Nodes=ALL Default=YES State=UP
"""


def _daemons(slurm):
    """Start munge and Slurm's daemons: their processes."""
    files = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
    options = [f"--{option}={slurm.home}/munge.{suffix}" for option, suffix in files.items()]
    done = slurm.run("munged", "--force", *options)
    assert done.returncode == 0, done.stderr
    lines = {host: f"exec {'slurmctld' if host == HEAD else 'slurmd'} -D" for host in (HEAD, *HOSTS)}
    return [
        slurm.start("sh", "-c", f"{line} >{slurm.home}/{host}/printed 2>&1", on=host)
        for host, line in lines.items()
    ]


def _wait_for_hosts(slurm):
    deadline = time.monotonic() + 20
    while len(slurm.run("sinfo", "-hNt", "idle").stdout.split("\n")) <= len(HOSTS):
        if time.monotonic() > deadline:
            logs = [path.read_text()[-1000:] for path in slurm.home.glob("*/printed")]
            raise RuntimeError("Slurm's hosts do not come up:\n" + "\n".join(logs))
        time.sleep(0.1)
