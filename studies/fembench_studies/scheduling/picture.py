"""A picture of a schedule in text."""

from collections.abc import Mapping, Sequence
from typing import Any

WIDTH = 72  # characters of the picture


def picture(tasks: Sequence[Mapping[str, Any]], hosts: Sequence[str]) -> str:
    """One line per host: tasks by name, in brackets while they compute; '.' while the host does not.

    `tasks`: task, host, begin and end of each, as printed by `fembench study schedule --json`.
    """
    last = max(t["end"] for t in tasks) or 1.0
    wide, lines = max(map(len, hosts)), []
    for host in hosts:
        cells = ["."] * WIDTH
        for one in (t for t in tasks if t["host"] == host and t["end"] > t["begin"]):
            a = min(round(WIDTH * one["begin"] / last), WIDTH - 1)
            b = min(max(round(WIDTH * one["end"] / last), a + 1), WIDTH)
            room = b - a - 2
            cells[a:b] = f"[{one['task'][:room]:=<{room}}]" if room > 0 else "|" * (b - a)
        lines.append(f"{host:<{wide}} {''.join(cells)}")
    return "\n".join(lines)
