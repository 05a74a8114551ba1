"""Pictures of the body: its parts, and its deformed shape."""

import itertools

import numpy as np
import pytest

from fembench.mesh.box import box
from fembench.report.fields import Fields
from fembench.report.plots import canvas
from fembench_studies.thesis_004 import body


@pytest.mark.parametrize(("element", "parts"), [("tet4", 3), ("hex8", 12)])
def test_the_body_is_drawn_in_parts_and_deformed(element, parts):
    mesh = box((3, 2, 3), element)
    part = np.arange(mesh.n_cells) * parts // mesh.n_cells
    fields = Fields(mesh.x, mesh.cells, element, 1e-6 * mesh.x, np.linspace(0, 1e6, mesh.n_cells), part)
    in_parts, bent = body.parts_picture(fields, "m"), body.deformed_picture(fields, "m")
    assert (">part 0<" in in_parts.svg) == (parts <= 8)
    assert f"in {parts} parts" in in_parts.caption
    assert "von Mises stress, MPa" in bent.svg


def test_the_numbers_below_the_colours_have_room():
    with canvas.figure(1, width=4.0) as (drawn, (axes,)):
        body.colour_bar(drawn, axes, 0.0013, 0.0191, "MPa", open_top=True)
        drawn.draw_without_rendering()
        boxes = [t.get_window_extent() for t in drawn.axes[1].get_xticklabels() if t.get_text()]
    assert len(boxes) > 2
    assert all(left.x1 + 2 < right.x0 for left, right in itertools.pairwise(boxes))


def test_a_body_without_displacement_is_drawn_at_rest():
    mesh = box((1, 1, 1), "hex8")
    still = Fields(mesh.x, mesh.cells, "hex8", 0 * mesh.x, np.zeros(1), np.zeros(1, dtype=np.int32))
    assert "drawn 0 times" in body.deformed_picture(still, "m").caption


def test_only_facets_towards_the_eye_are_painted():
    mesh = box((1, 1, 1), "hex8")
    fields = Fields(mesh.x, mesh.cells, "hex8", 0 * mesh.x, np.zeros(1), np.zeros(1, dtype=np.int32))
    drawn = []

    def count(axes, corners, colours, **look):
        drawn.append(len(corners))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(body, "polygons", count)
        body.parts_picture(fields, "m")
    assert drawn == [3]
