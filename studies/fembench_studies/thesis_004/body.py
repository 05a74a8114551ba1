"""Pictures of the body: its parts pulled apart, and its deformed shape with the stress.

Boundary facets are rotated; those that face away are left out, and the others are
painted from back to front (orthographic projection, seen from x > 0, y < 0, z > 0).
"""

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PolyCollection
from matplotlib.colors import Normalize
from matplotlib.ticker import MaxNLocator

from fembench.base.units import digits
from fembench.mesh.facets import boundary_facets
from fembench.report.fields import Fields
from fembench.report.plots import canvas
from fembench.report.plots.canvas import Plot

Floats = npt.NDArray[np.float64]

AZIMUTH, ELEVATION = np.radians(-50.0), np.radians(24.0)
LIGHT = np.array([0.35, -0.75, 0.56])
APART = 0.22  # shift of the parts away from the centre, relative to their distance from it
BEND = 0.12  # largest displacement drawn, relative to the size of the body


def _view() -> Floats:
    """(3, 3) rows: right, up, towards the eye."""
    a, e = AZIMUTH, ELEVATION
    eye = np.array([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)])
    right = np.array([-np.sin(a), np.cos(a), 0.0])
    return np.array([right, np.cross(eye, right), eye])


def parts_picture(fields: Fields, title: str) -> Plot:
    """The parts of a mesh in colours, pulled apart."""
    n = int(fields.part.max()) + 1
    corners, part = [], []
    middle = fields.x.mean(axis=0)
    for p in range(n):
        own = fields.cells[fields.part == p]
        if len(own):
            facets, _ = boundary_facets(own, fields.element)
            shift = APART * (fields.x[own].mean(axis=(0, 1)) - middle)
            corners.append(fields.x[facets] + shift)
            part.append(np.full(len(facets), p))
    points, owner = np.concatenate(corners), np.concatenate(part)
    cells = np.bincount(fields.part).tolist()
    with canvas.figure(1, width=7.0, height=5.0) as (drawn, (axes,)):
        _paint(axes, points, part_colours(n)[owner, :3], shade=0.32)
        _frame(axes, points.reshape(-1, 3))
        if n <= 8:
            for p in range(n):
                axes.plot([], [], "s", markersize=10, color=part_colours(n)[p], label=f"part {p}")
            canvas.legend_below(drawn, axes)
        return canvas.plot(
            drawn,
            "body_parts",
            f"Partition of {title}",
            f"The body in {n} parts, pulled apart. Ranks exchange the values on the faces that their parts "
            "share, in every iteration: small, even faces are good.",
            f"The {n} parts have {min(cells)} to {max(cells)} cells.",
        )


def deformed_picture(fields: Fields, title: str) -> Plot:
    """The deformed surface, coloured by von Mises stress."""
    facets, cell = boundary_facets(fields.cells, fields.element)
    size = np.ptp(fields.x, axis=0).max()
    largest = float(np.linalg.norm(fields.u, axis=1).max())
    scale = BEND * size / largest if largest > 0 else 0.0
    points = (fields.x + scale * fields.u)[facets]
    stress = fields.von_mises[cell] / 1e6
    high = float(np.quantile(stress, 0.98))
    low = float(min(stress.min(), high))
    with canvas.figure(1, width=7.0, height=5.4) as (drawn, (axes,)):
        _paint(axes, points, shades(stress, low, high)[:, :3], shade=0.15)
        _frame(axes, np.concatenate([points.reshape(-1, 3), _outline(axes, fields.x)]))
        colour_bar(drawn, axes, low, high, "von Mises stress, MPa", open_top=bool(stress.max() > high))
        return canvas.plot(
            drawn,
            "body_deformed",
            f"Deformed body, {title}",
            f"Displacements are drawn {digits(scale)} times as large as they are (the largest is "
            f"{largest:.3g} m); the thin box encloses the undeformed body. Colours show the von Mises stress "
            "of the cells at the surface; up to 2 % of them exceed the scale, with a maximum of "
            f"{digits(stress.max())} MPa. Near a point load, the stress grows with every refinement.",
            f"The body moves by up to {largest:.3g} m; the largest stress at its surface is "
            f"{digits(stress.max())} MPa.",
        )


def _paint(axes: canvas.Axes, points: Floats, colours: Floats, *, shade: float) -> None:
    """Paint facets with (n, k, 3) corners in (n, 3) colours, darker by up to
    `shade` away from the light."""
    view = _view()
    normal = np.cross(points[:, 1] - points[:, 0], points[:, 2] - points[:, 0])
    normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-300)
    seen = np.flatnonzero(normal @ view[2] > 1e-9)
    order = seen[np.argsort(points[seen].mean(axis=1) @ view[2])]
    lit = 1 - shade * (1 - np.clip(normal[order] @ LIGHT, 0, 1))
    flat = points[order] @ view[:2].T
    fine = len(order) > 3000
    edge = "face" if fine else "#00000055"
    polygons(axes, flat, colours[order] * lit[:, None], edge=edge, width=0.3)


def _outline(axes: canvas.Axes, x: Floats) -> Floats:
    """Draw the twelve edges of the box around the undeformed body;
    return its corners, (8, 3)."""
    low, high = x.min(axis=0), x.max(axis=0)
    corner = np.array([[(low, high)[k >> i & 1][i] for i in range(3)] for k in range(8)])
    flat = corner @ _view()[:2].T
    for k in range(8):
        for i in (1, 2, 4):
            if not k & i:
                axes.plot(*flat[[k, k | i]].T, color=canvas.GREY, linewidth=0.8)
    return corner


def _frame(axes: canvas.Axes, points: Floats) -> None:
    """Set the limits around (n, 3) points, and draw arrows for
    x, y, z at the lower left."""
    flat = points @ _view()[:2].T
    low, high = flat.min(axis=0), flat.max(axis=0)
    length = 0.12 * (high - low).max()
    origin = low + np.array([-0.6 * length, 0.4 * length])
    for direction, name in zip(_view()[:2].T * length, "xyz"):
        axes.annotate("", origin + direction, origin, arrowprops={"arrowstyle": "->", "color": canvas.BLACK})
        axes.annotate(name, origin + 1.25 * direction, ha="center", va="center", size=10)
    pad = 0.03 * (high - low).max()
    axes.set_xlim(low[0] - 1.2 * length, high[0] + pad)
    axes.set_ylim(low[1] - pad, high[1] + pad)
    axes.set_aspect("equal")
    axes.set_axis_off()


def polygons(axes: canvas.Axes, corners: Floats, colours: object, *, edge: str, width: float) -> None:
    """Polygons with (n, k, 2) corners, drawn in their order; as an image if many."""
    many = len(corners) > 6000
    axes.add_collection(
        PolyCollection(
            list(corners), facecolors=colours, edgecolors=edge, linewidths=width, rasterized=many, closed=True
        )
    )


def colour_bar(
    drawn: canvas.Figure, axes: canvas.Axes, low: float, high: float, label: str, *, open_top: bool
) -> None:
    """A horizontal bar below the axes from low to high in the colours of `shades`."""
    scale = ScalarMappable(Normalize(low, high), "cividis")
    bar = drawn.colorbar(
        scale, ax=axes, location="bottom", shrink=0.6, aspect=30, extend="max" if open_top else "neither"
    )
    bar.locator = MaxNLocator(4)  # numbers of six digits have room
    bar.set_label(label)


def shades(values: Floats, low: float, high: float) -> Floats:
    """(n, 4) colours of values between low and high."""
    return np.asarray(mpl.colormaps["cividis"](Normalize(low, high, clip=True)(values)))


def part_colours(n: int) -> Floats:
    """(n, 4) colours of parts; neighbours in number differ."""
    if n <= len(canvas.CYCLE):
        return np.array([mpl.colors.to_rgba(c) for c in canvas.CYCLE[:n]])
    order = np.argsort(np.arange(n) * 0.618034 % 1.0)
    return np.asarray(mpl.colormaps["turbo"](np.linspace(0.05, 0.95, n)))[order]
