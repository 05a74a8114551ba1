"""What slows the hosts of a job before it begins: their quotas, and other programs.

`fembench doctor` shows it as findings. Other commands that start a job say it once, as
warnings of the logger `fembench`, which Python prints on standard error by default.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from fembench.launch.hosts import folded
from fembench.launch.job import STARTED, Started, StartedHost

if TYPE_CHECKING:
    from fembench.host.finding import Finding
    from fembench.launch.probed import ProbedHost

_warned: set[tuple[str, str]] = set()  # (item, hosts) of this process


def slowed(found: Sequence[ProbedHost | StartedHost]) -> Iterator[Finding]:
    """The hosts with a quota, and those with other work: a line each, with the worst."""
    from fembench.host import checkup

    quotas = [(host, checkup.quota(host.cpu_quota, host.cores)) for host in found]
    loads = [(host, checkup.load(host.load_average, host.cores)) for host in found]
    for findings in (
        sorted(quotas, key=lambda q: q[0].cpu_quota),
        sorted(loads, key=lambda o: -o[0].load_average),
    ):
        bad = {host.name: finding for host, finding in findings if finding.status != "ok"}
        if bad:
            names = [host.name for host in found if host.name in bad]
            worst, many = next(iter(bad.values())), " at worst" if len(bad) > 1 else ""
            yield worst._replace(found=f"{folded(names)}: {worst.found}{many}")


def warn(folder: Path) -> None:
    """Warn of what slows the hosts of the job in `folder`; once per item and hosts.

    Not in a lab, which slows its hosts on purpose.
    """
    if os.environ.get("FEMBENCH_SYNTHETIC"):
        return
    with contextlib.suppress(OSError, msgspec.DecodeError):
        hosts = msgspec.json.decode((folder / STARTED).read_bytes(), type=Started).hosts
        for finding in slowed(hosts):
            key = finding.item, finding.found.partition(":")[0]
            if key not in _warned:
                _warned.add(key)
                line = f"note: {finding.item}: {finding.found}: {finding.advice}"
                logging.getLogger("fembench").warning(line)
