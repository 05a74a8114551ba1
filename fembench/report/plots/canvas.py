"""The one door to matplotlib: figures, axes and SVG in one style.

Figures are made without pyplot, so there is no global state, and no window opens. SVG
keeps text as text. Identifiers are salted with the plot's name, so that several plots
fit into one page and equal records give equal files. Colours are those of Okabe and
Ito, which colour-blind readers can distinguish.
"""

import contextlib
import dataclasses
import io
import os
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, PathPatch
from matplotlib.path import Path
from matplotlib.ticker import FuncFormatter, NullLocator

from fembench.base.arrays import F64
from fembench.base.errors import InputError
from fembench.base.files import write_atomic

BLACK, ORANGE, SKY, GREEN, YELLOW, BLUE, VERMILION, PINK = (
    "#222222", "#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7",
)  # fmt: skip
GREY, PALE, SAND, LILAC, BROWN = "#8A8A8A", "#CFCFCF", "#D8BE94", "#E8D3E6", "#7A4F2A"
PAPER, GRID, AXIS = "#FFFFFF", "#E2E2E2", "#666666"
# colours that a page may replace, by variables of its style sheet of these names
THEME = {BLACK: "ink", PAPER: "paper", GRID: "grid", AXIS: "axis", BLUE: "blue", BROWN: "brown"}
TIP = "tip: "  # begins the identifier of what has a text under the pointer
NAMED = {  # colour: its name in captions, which a reader understands without a legend
    ORANGE: "orange",
    SKY: "light blue",
    GREEN: "green",
    YELLOW: "yellow",
    BLUE: "blue",
    VERMILION: "dark orange",
    PINK: "pink",
    GREY: "grey",
    PALE: "light grey",
    BROWN: "brown",
}
CYCLE = (BLUE, VERMILION, GREEN, ORANGE, PINK, SKY, BLACK, "#B5A800")
MARKERS = "osD^vP*X"
WIDTH = 9.0  # inches of a whole figure
POINTS = 72  # of an inch, as in SVG
MOST_TICKS = 9  # of an axis of ranks
LONGEST = 24  # characters of a name under an axis
Y_AXIS = 0.6  # inches of a panel, about
WHOLE: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}
STYLE: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": AXIS,
    "axes.grid": True,
    "axes.labelcolor": BLACK,
    "axes.labelsize": 11,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 12,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial", "sans-serif"],
    "font.size": 11,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "legend.fontsize": 10.5,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "lines.markersize": 6.5,
    "svg.fonttype": "none",
    "text.color": BLACK,
    "xtick.color": BLACK,
    "xtick.labelsize": 10.5,
    "ytick.color": BLACK,
    "ytick.labelsize": 10.5,
}


@dataclasses.dataclass(frozen=True, slots=True)
class Plot:
    """A picture with its title and caption."""

    name: str  # of its file
    title: str
    caption: str  # what it shows and how to read it
    svg: str = dataclasses.field(repr=False)
    finding: str = ""  # what these results show in it, in a sentence

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: os.PathLike[str] | str) -> None:
        """Write the picture as an SVG file. Raises InputError for a name of another kind."""
        if os.path.splitext(path)[1] != ".svg":
            raise InputError(f"plot '{self.name}': cannot save as {path}; expected a name that ends in .svg")
        write_atomic(os.fspath(path), self.svg)


@contextlib.contextmanager
def figure(
    n: int, *, columns: int = 3, height: float = 3.6, width: float = WIDTH
) -> Iterator[tuple[Figure, list[Axes]]]:
    """A figure of n panels, up to `columns` side by side; `height` is in inches per row."""
    columns = 2 if n == 4 else min(n, columns)
    n_rows = -(-n // columns)
    with mpl.rc_context(STYLE):
        drawn = Figure(figsize=(width, height * n_rows), layout="constrained", dpi=POINTS)
        FigureCanvasSVG(drawn)
        axes = drawn.subplots(n_rows, columns, squeeze=False).ravel()
        for empty in axes[n:]:
            empty.remove()
        yield drawn, list(axes[:n])


def plot(drawn: Figure, name: str, title: str, caption: str, finding: str = "") -> Plot:
    """The figure as a Plot. Call inside the `with figure(…)` that made it."""
    stream = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": name}):
        if layout := drawn.get_layout_engine():
            layout.execute(drawn)  # by itself: with an engine, matplotlib draws everything twice
            drawn.set_layout_engine(None)
        drawn.savefig(stream, format="svg", metadata={"Date": None, "Creator": None}, dpi=150)
    return Plot(name, title, caption, _embeddable(stream.getvalue(), title), finding)


def _embeddable(svg: str, title: str) -> str:
    """The svg element alone, with a label for screen readers."""
    body = svg[svg.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = re.sub(f'<g id="{TIP}([^"]*)">', r'<g class="tip" pointer-events="all"><title>\1</title>', body)
    label = title.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
    return body.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)


def themed(svg: str) -> str:
    """The picture with the colours of THEME as variables of the page around it."""
    names = {colour.lower(): name for colour, name in THEME.items()}
    alike = re.compile("|".join(names))
    return alike.sub(lambda found: f"var(--{names[found[0]]}, {found[0]})", svg)


def tip(artist: Artist, text: str) -> None:
    """Show a text while the pointer is on something drawn, which takes no room."""
    artist.set_in_layout(False)
    artist.set_gid(TIP + text.replace('"', "'").replace(r"\$", "$"))


def column_tip(axes: Axes, x: float, width: float, text: str) -> None:
    """Show a text while the pointer is above or below a bar."""
    tip(axes.axvspan(x - 0.5 * width, x + 0.5 * width, facecolor="none", linewidth=0), text)


def row_tip(axes: Axes, y: float, height: float, text: str) -> None:
    """Show a text while the pointer is in a row of a chart."""
    tip(axes.axhspan(y - 0.5 * height, y + 0.5 * height, facecolor="none", linewidth=0), text)


def point_tip(axes: Axes, x: float, y: float, text: str) -> None:
    """Show a text while the pointer is near a point."""
    (area,) = axes.plot([x], [y], color="none", marker="o", markersize=14, markeredgewidth=0, linestyle="")
    tip(area, text)


def curve_with_bars(
    axes: Axes, x: npt.ArrayLike, values: npt.ArrayLike, low: npt.ArrayLike, high: npt.ArrayLike, **look: Any
) -> None:
    """A curve with error bars from `low` to `high`; an end that is nan has no bar."""
    middle = np.asarray(values, dtype=float)
    spread = np.clip(np.nan_to_num([middle - np.asarray(low), np.asarray(high) - middle]), 0, None)
    axes.errorbar(x, middle, spread, capsize=3, elinewidth=1.1, **look)


def legend_below(drawn: Figure, axes: Axes) -> None:
    """One legend below the figure for all panels, from the labels of one of them."""
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        drawn.legend(handles, labels, loc="outside lower center", ncols=_columns(drawn, labels))


def _columns(drawn: Figure, labels: Sequence[str]) -> int:
    """The number of columns of a legend: as many as fit, in rows of about equal length."""
    inches = 0.65 + 0.08 * max(map(len, labels))
    n_rows = -(-len(labels) // max(1, int(drawn.get_size_inches()[0] / inches)))
    return -(-len(labels) // n_rows)


def colour_legend(drawn: Figure, labels: Mapping[str, str], lines: Sequence[str] = ()) -> None:
    """A legend of label -> colour below the figure, and of black lines."""
    handles: list[Artist] = [Patch(color=colour, label=label) for label, colour in labels.items()]
    handles += [Line2D([], [], color=BLACK, label=label) for label in lines]
    drawn.legend(handles=handles, loc="outside lower center", ncols=_columns(drawn, [*labels, *lines]))


def key_below(drawn: Figure, looks: Mapping[str, Mapping[str, Any]]) -> None:
    """A legend of label -> look of its line or marker, under the figure."""
    handles = [Line2D([], [], label=escaped(label), **look) for label, look in looks.items()]
    drawn.legend(handles=handles, loc="outside lower center", ncols=_columns(drawn, list(looks)))


def rank_axis(axes: Axes, ranks: Sequence[int]) -> None:
    """A logarithmic axis of ranks, with ticks at those that were run (as many as fit).

    If not all fit, at powers of two, of which there must be three.
    """
    ticks = sorted(set(ranks))
    powers = [n for n in ticks if n & (n - 1) == 0]
    named = powers if len(ticks) > MOST_TICKS and len(powers) > 2 else ticks
    axes.set_xscale("log", base=2)
    axes.set_xticks(named[:: -(-len(named) // MOST_TICKS)], minor=False)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
    axes.set_xlim(min(ticks) / 1.15, max(ticks) * 1.15)
    axes.set_xlabel("ranks")


def plain_log(axes: Axes, which: str, values: npt.ArrayLike) -> None:
    """A logarithmic x or y axis with plain, round numbers around the values."""
    getattr(axes, f"set_{which}scale")("log")
    axis = getattr(axes, f"{which}axis")
    axis.set_ticks(_round_numbers(np.asarray(values, float)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:,.10g}".replace(",", " ")))


def _round_numbers(values: np.ndarray) -> list[float]:
    low = np.log10(values.min())
    high = np.log10(values.max())
    steps = (1, 1.5, 2, 3, 4, 5, 7) if high - low < 0.7 else (1, 2, 5) if high - low < 3 else (1,)
    ticks = [m * 10.0**e for e in range(int(np.floor(low)) - 1, int(np.ceil(high)) + 1) for m in steps]
    return [t for t in ticks if 0.8 * values.min() <= t <= 1.25 * values.max()]


def title(axes: Axes, words: str) -> None:
    """The title of a panel, on several lines if it is wide."""
    axes.set_title("\n".join(_lines(escaped(words), int(8 * _inches(axes)))))


def _lines(words: str, room: int) -> list[str]:
    """Lines of up to `room` characters, broken at ' · ' only."""
    kept = words.replace(" ", "\0").replace("\0·\0", "\0· ").split("\n")
    return [part.replace("\0", " ") for line in kept for part in textwrap.wrap(line, room, **WHOLE)]


def _inches(axes: Axes) -> float:
    """The width of a panel, with its axis."""
    grid = axes.get_subplotspec()
    inches: float = axes.figure.bbox.width / axes.figure.dpi
    return inches / (grid.get_gridspec().ncols if grid else 1)


def categories(axes: Axes, names: Sequence[str], label: str) -> None:
    """Ticks with names: in several lines if they are long, turned if that is not enough; thinned."""
    pad = 0.6 + max(3 - len(names), 0) / 2  # one or two bars are not as wide as the panel
    room = 10 * (_inches(axes) - Y_AXIS)  # characters beside each other
    each = room / (len(names) - 1 + 2 * pad) - 1
    narrow, wide = (_names(names, max(1, min(int(most), LONGEST))) for most in (each, LONGEST))
    longest = max((len(line) for name in narrow for line in name.split("\n")), default=0)
    turned = longest > max(3, each)
    step = -(-len(names) * (2 if turned else longest + 1) // int(room))
    kwargs: dict[str, Any] = {"rotation": 35, "ha": "right", "rotation_mode": "anchor"} if turned else {}
    shown = (wide if turned else narrow)[::step]
    axes.set_xticks(range(0, len(names), step), [escaped(name) for name in shown], **kwargs)
    axes.set_xlim(-pad, len(names) - 1 + pad)
    axes.grid(visible=False, axis="x")
    axes.set_xlabel(label)


def _names(names: Sequence[str], room: int) -> list[str]:
    """Names in lines of up to `room` characters; a part that is longer than LONGEST is cut."""
    lines = (_lines(name, room) for name in names)
    return ["\n".join(p if len(p) <= LONGEST else f"{p[: LONGEST - 1]}…" for p in each) for each in lines]


def seconds_scale(largest: float) -> tuple[float, str]:
    """(factor, unit) in which seconds up to `largest` are drawn."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if largest >= 0.9995 * size:
            return 1 / size, unit
    return 1e9, "ns"


def escaped(words: str) -> str:
    """Text in which a dollar sign does not start a formula."""
    return words.replace("$", r"\$")


def rectangles(axes: Axes, left: F64, right: F64, low: F64, high: F64, colour: str) -> None:
    """Rectangles of one colour, (n,) each: one path, however many they are."""
    n = len(left)
    corners = np.empty((n, 5, 2))
    corners[:, :, 0] = np.stack([left, right, right, left, left], axis=1)
    corners[:, :, 1] = np.stack([low, low, high, high, low], axis=1)
    codes = np.tile([Path.MOVETO, *3 * [Path.LINETO], Path.CLOSEPOLY], n)
    axes.add_artist(PathPatch(Path(corners.reshape(-1, 2), codes), facecolor=colour, linewidth=0))
    axes.update_datalim(corners.reshape(-1, 2))
    axes.autoscale_view()
