"""Whether the batch system has taken the hosts of this job away."""

import os
import re
import subprocess
from collections.abc import Mapping

ALIVE = ("RUNNING", "CONFIGURING", "PENDING", "SUSPENDED")  # states of a Slurm job
_SAID = (  # by launchers and batch systems
    (r"Expired or invalid job (\d+)", "Slurm job {0} has ended"),
    (r"Job allocation (\d+) has been revoked", "Slurm job {0} has ended"),
    (
        r"\*\*\* JOB (\d+) ON \S+ CANCELLED AT \S+ DUE TO TIME LIMIT",
        "Slurm job {0} reached its time limit",
    ),
    (r"\*\*\* JOB (\d+) ON \S+ CANCELLED", "Slurm job {0} has ended"),
    (r"PBS: job killed: (\w+)", "the PBS job has ended ({0})"),
    (r"(TERM_\w+): job killed", "the LSF job has ended ({0})"),
)


def how_it_ended(output: str, environment: Mapping[str, str] = os.environ) -> str:
    """'Slurm job 7 has ended (CANCELLED)' if the job no longer has its hosts; "" if it has, or is unknown.

    `output`: what the launcher printed. Slurm itself is asked, because launchers do not always say it.
    """
    found = ((re.search(pattern, output), meaning) for pattern, meaning in _SAID)
    said = next((meaning.format(*match.groups()) for match, meaning in found if match), "")
    return said or _by_slurm(environment.get("SLURM_JOB_ID", ""))


def _by_slurm(job: str) -> str:
    if not job:
        return ""
    try:
        line = ["squeue", "--noheader", f"--jobs={job}", "--format=%T"]
        done = subprocess.run(
            line, capture_output=True, text=True, errors="replace", timeout=20, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    states = done.stdout.split()
    if done.returncode and "Invalid job id" not in done.stderr:
        return ""
    if any(state in ALIVE for state in states):
        return ""
    return f"Slurm job {job} has ended" + (f" ({states[0]})" if states else "")
