"""A made-up environment, clock and calibration, for records that nobody measured."""

from msgspec.structs import replace

from fembench.records.record import ClockCertificate, Environment, HostFacts

CLOCK = ClockCertificate(
    name="tsc",
    ticks_per_second=1e9,
    asked="auto",
    certified=True,
    reason="",
    drift=0.0,
    read_ns=10.0,
    quantum_ns=1.0,
    span_ns=100.0,
)

HETEROGENEOUS = {  # variables of a Slurm job of two components, inside salloc
    "SLURM_JOB_ID": "7",
    "SLURM_HET_SIZE": "2",
    "SLURM_JOB_NODELIST_HET_GROUP_0": "n[1-2]",
    "SLURM_TASKS_PER_NODE_HET_GROUP_0": "2(x2)",
    "SLURM_JOB_NODELIST_HET_GROUP_1": "n3",
    "SLURM_TASKS_PER_NODE_HET_GROUP_1": "1",
}


def planted_environment(host_of_rank, command="fembench run", **changes):
    """Of ranks on these hosts, (P,) names."""
    names = tuple(dict.fromkeys(host_of_rank))
    values = {
        "hosts": tuple(HostFacts(name=name, cpu_model="Example", cores=8) for name in names),
        "rank_host": tuple(names.index(host) for host in host_of_rank),
        "affinity": ((0,),) * len(host_of_rank),
        "oversubscribed": False,
        "mpi": "Example MPI",
        "launcher": "mpiexec",
        "command": command,
        "versions": {},
        "commit": "abc",
        "dirty": False,
        "kernels": "compiled",
        "blas_threads": 1,
        "variables": {},
    }
    return Environment(**{**values, **changes})


def on_hosts_with(made, only="", **facts):
    """A record or profile as if its hosts, or one of them, had these facts."""
    hosts = [replace(h, **facts) if only in ("", h.name) else h for h in made.environment.hosts]
    return replace(made, environment=replace(made.environment, hosts=tuple(hosts)))
