"""The hooks, fixtures and planted data of fembench's own tests, and pages without pictures.

Rendering takes ten times as long as everything else that a page test looks at.
"""

import sys
from pathlib import Path

import pytest
from matplotlib.figure import Figure

sys.path.append(str(Path(__file__).resolve().parents[2] / "tests"))
import hooks

from fembench.report.plots.canvas import Plot
from fembench_studies import charts


def pytest_configure(config):
    if not config.pluginmanager.is_registered(hooks):
        config.pluginmanager.register(hooks)


@pytest.fixture(scope="module")
def unrendered():
    """Figures are drawn on, but their SVG is empty."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Figure, "savefig", lambda self, stream, **_: stream.write("<svg></svg>"))
        yield


@pytest.fixture(scope="module")
def undrawn():
    """Charts of the studies are not drawn at all: that takes ten times as long as the rest."""

    def said(name, title, caption, panels, *_, **__):
        return Plot(name, title, caption, "", charts.finding(panels))

    with pytest.MonkeyPatch.context() as patch:
        for kind in ("grouped", "curves", "stacked"):
            patch.setattr(charts, kind, said)
        yield
