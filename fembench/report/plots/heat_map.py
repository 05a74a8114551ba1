"""Heat map of hosts and phases: which of many hosts is slow, and in what."""

from collections.abc import Sequence

import numpy as np

from fembench.report.host_times import COLUMNS, COMPUTING, HostTimes
from fembench.report.plots import canvas
from fembench.report.plots.canvas import Axes, Floats, Plot

VALUES = 12  # hosts up to which values are written into the map
NAMED = 40  # hosts up to which all are named
ODD = 1.1  # of many hosts, those that compute by this factor longer or shorter are named ...
LABELS = 12  # ... but no more than this
LEAST, MOST = 1.1, 2.0  # factor at which the colours end: as large as computing differs, between these


def heat_map(found: Sequence[HostTimes]) -> Plot | None:
    """The run on most hosts, of the largest mesh among those."""
    if not found:
        return None
    one = max(found, key=lambda t: (len(t.hosts), t.result.record.mesh.n_equations, t.result.ranks))
    end = _end(one)
    with canvas.figure(1, height=4.6) as (drawn, (axes,)):
        canvas.heat(
            drawn, axes, np.log2(np.clip(one.relative.T, 1e-3, 1e3)), float(np.log2(end)), _ticks(end)
        )
        axes.set_yticks(range(len(COLUMNS)), list(COLUMNS))
        _names(axes, one)
        if len(one.hosts) <= VALUES:
            _values(axes, one.relative, end)
        axes.set_xlabel(
            "host" if len(one.hosts) <= NAMED else f"{len(one.hosts)} hosts, in the order of ranks"
        )
        axes.set_title(
            canvas.escaped(f"{one.result.mesh} · {one.result.variant} · ranks {one.result.setting}")
        )
        return canvas.plot(drawn, "host_times", "Phases by host", _caption(one))


def _caption(one: HostTimes) -> str:
    k, relative = one.slowest, one.relative[:, list(COLUMNS).index("computing")]
    return (
        "Each column is a host, each row a phase. Colours give the time over that of the median host: red "
        "takes longer, blue is faster, white is equal. A red column in the upper rows is a slow host; the "
        "others then "
        f"wait for it, so its wait and all-reduce are blue. Computing takes longest on {one.hosts[k]}: "
        f"{relative[k]:.2f} of the median host." + _unnamed(one)
    )


def _unnamed(one: HostTimes) -> str:
    if len(one.hosts) <= NAMED:
        return ""
    return (
        f" Hosts that compute {ODD - 1:.0%} longer or shorter than the median are named (up to {LABELS} of "
        f"{len(one.hosts)}); the table has all."
    )


def _end(one: HostTimes) -> float:
    """The factor at which the colours end."""
    columns = [k for k, name in enumerate(COLUMNS) if name in COMPUTING]
    logs = np.abs(np.log(one.relative[:, columns]))
    return float(np.clip(np.exp(np.nanmax(logs, initial=0.0)), LEAST, MOST))


def _ticks(end: float) -> dict[float, str]:
    """Place on the colour bar (log2) -> label."""
    middle = end**0.5
    return {float(np.log2(v)): f"{v:.2f}" for v in (1 / end, 1 / middle, 1.0, middle, end)}


def _names(axes: Axes, one: HostTimes) -> None:
    if len(one.hosts) <= NAMED:
        canvas.categories(axes, one.hosts, "host")
    else:
        shown = _odd(one)
        axes.set_xticks(
            shown,
            [canvas.escaped(one.hosts[k]) for k in shown],
            rotation=35,
            ha="right",
            rotation_mode="anchor",
        )
    axes.set_xlim(-0.5, len(one.hosts) - 0.5)


def _odd(one: HostTimes) -> list[int]:
    """Hosts to name: those that differ most, far enough from each other to be read."""
    logs = np.abs(np.log(one.relative[:, list(COLUMNS).index("computing")]))
    room = len(one.hosts) / 30
    chosen: list[int] = []
    for k in np.argsort(-logs, kind="stable").tolist():
        if logs[k] > np.log(ODD) and len(chosen) < LABELS and all(abs(k - other) > room for other in chosen):
            chosen.append(k)
    return sorted(chosen)


def _values(axes: Axes, relative: Floats, end: float) -> None:
    for (host, row), value in np.ndenumerate(relative):
        dark = abs(np.log(np.clip(value, 1e-3, 1e3))) > 0.6 * np.log(end)
        axes.annotate(
            f"{value:.2f}" if np.isfinite(value) else "–",
            (host, row),
            ha="center",
            va="center",
            size=9.5,
            color="white" if dark else canvas.BLACK,
        )
