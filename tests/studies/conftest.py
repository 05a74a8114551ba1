"""Pages without pictures: rendering takes ten times as long as everything else that a page test looks at."""

import pytest
from matplotlib.figure import Figure


@pytest.fixture(scope="module")
def unrendered():
    """Figures are drawn on, but their SVG is empty."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Figure, "savefig", lambda self, stream, **_: stream.write("<svg></svg>"))
        yield


@pytest.fixture
def not_laid_out(monkeypatch):
    """Figures are rendered, without arranging their panels first."""
    save = Figure.savefig

    def hurried(self, *args, **more):
        self.set_layout_engine("none")
        save(self, *args, **more)

    monkeypatch.setattr(Figure, "savefig", hurried)
