"""Heat map of hosts and phases: the speed of each host, and in which phases it differs."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fembench.base.units import few
from fembench.report.host_times import COLUMNS, COMPUTING, HostTimes
from fembench.report.plots import canvas
from fembench.report.plots.canvas import Axes, Floats, Plot
from fembench.stats.student import FEWEST
from fembench.weights.host_speed import HostSpeeds

SPEED = "all work, by speed"
VALUES = 12  # hosts up to which values are written into the map
NAMED = 40  # hosts up to which all are named
LABELS = 12  # slow hosts named at most, if there are many hosts
LEAST, MOST = 1.1, 2.0  # factor at which the colours end: as large as computing differs, between these


def heat_map(found: Sequence[HostTimes], speeds: HostSpeeds) -> Plot | None:
    """The run on most hosts, of the largest mesh among those; None if no difference could be shown."""
    known = [one for one in found if len(one.result.runs) >= FEWEST or speeds.hosts]
    if not known:
        return None
    one = max(known, key=lambda t: (len(t.hosts), t.result.record.mesh.n_equations, t.result.ranks))
    values, shown = _cells(one, speeds)
    end = _end(values[:, : 1 + len(COMPUTING)], shown[:, : 1 + len(COMPUTING)])
    with canvas.figure(1, height=4.9) as (drawn, (axes,)):
        logs = np.where(shown, np.log2(np.clip(values, 1e-3, 1e3)), 0.0)
        canvas.heat(drawn, axes, logs.T, float(np.log2(end)), _ticks(end))
        axes.set_yticks(range(1 + len(COLUMNS)), [SPEED, *COLUMNS])
        _names(axes, one, speeds)
        if len(one.hosts) <= VALUES:
            _values(axes, values, shown, end)
        axes.set_xlabel(
            "host" if len(one.hosts) <= NAMED else f"{len(one.hosts)} hosts, in the order of ranks"
        )
        axes.set_title(
            canvas.escaped(f"{one.result.mesh} · {one.result.variant} · ranks {one.result.setting}")
        )
        return canvas.plot(drawn, "host_times", "Phases by host", _caption(one, speeds))


def _cells(one: HostTimes, speeds: HostSpeeds) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """((H, 1 + n_columns) times over that of the median host, whether they differ); first that of all work,
    by the stated speed."""
    said = [speeds.of(name) for name in one.hosts]
    whole = np.array([1 / host.speed if host else np.nan for host in said])
    slow = np.array([bool(host and host.slow) for host in said])
    return np.column_stack([whole, one.relative]), np.column_stack([slow, one.apart])


def _caption(one: HostTimes, speeds: HostSpeeds) -> str:
    slow = [f"{h.name} ({100 * h.speed:.0f} %{f', {h.cause}' if h.cause else ''})" for h in speeds.slow]
    named = f"Slow: {few(slow, LABELS)}." if slow else "No host is shown to be slow."
    if speeds.disturbed:
        named = f"DISTURBED: {speeds.disturbed}. {named}"
    return (
        "Each column is a host. The first row is its speed, stated from all that was measured, as the time "
        "that the same work takes; the others are phases of this case, over the median host. Only "
        "significant differences are coloured: red takes longer, blue is faster. In a phase, that takes "
        f"three or more runs. A slow host makes the others wait: their wait and all-reduce are long. {named}"
        + _unnamed(one)
    )


def _unnamed(one: HostTimes) -> str:
    if len(one.hosts) <= NAMED:
        return ""
    return f" Slow hosts are named (up to {LABELS} of {len(one.hosts)}); the table has all."


def _end(values: Floats, shown: npt.NDArray[np.bool_]) -> float:
    """The factor at which the colours end."""
    logs = np.abs(np.log(values[shown]))
    return float(np.clip(np.exp(np.nanmax(logs, initial=0.0)), LEAST, MOST))


def _ticks(end: float) -> dict[float, str]:
    """Place on the colour bar (log2) -> label."""
    middle = end**0.5
    return {float(np.log2(v)): f"{v:.2f}" for v in (1 / end, 1 / middle, 1.0, middle, end)}


def _names(axes: Axes, one: HostTimes, speeds: HostSpeeds) -> None:
    if len(one.hosts) <= NAMED:
        canvas.categories(axes, one.hosts, "host")
    else:
        shown = _odd(one, speeds)
        axes.set_xticks(
            shown,
            [canvas.escaped(one.hosts[k]) for k in shown],
            rotation=35,
            ha="right",
            rotation_mode="anchor",
        )
    axes.set_xlim(-0.5, len(one.hosts) - 0.5)


def _odd(one: HostTimes, speeds: HostSpeeds) -> list[int]:
    """Hosts to name: the slowest, far enough from each other to be read."""
    room = len(one.hosts) / 30
    chosen: list[int] = []
    for host in speeds.slow:
        k = one.hosts.index(host.name) if host.name in one.hosts else -1
        if k >= 0 and len(chosen) < LABELS and all(abs(k - other) > room for other in chosen):
            chosen.append(k)
    return sorted(chosen)


def _values(axes: Axes, values: Floats, shown: npt.NDArray[np.bool_], end: float) -> None:
    for (host, row), value in np.ndenumerate(values):
        dark = shown[host, row] and abs(np.log(np.clip(value, 1e-3, 1e3))) > 0.6 * np.log(end)
        axes.annotate(
            f"{value:.2f}" if np.isfinite(value) else "–",
            (host, row),
            ha="center",
            va="center",
            size=9.5,
            color="white" if dark else canvas.BLACK,
        )
