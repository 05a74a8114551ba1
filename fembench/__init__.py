"""fembench: a parallel finite-element benchmark for clusters whose hosts may be unequal.

For notebooks and scripts: `fembench.load("results/NAME")` gives the runs of a folder and their tables.
Every rank of a job imports this file, so it imports nothing before it is asked.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

    from fembench.notebook import Runs


def load(path: Path | str) -> Runs:
    """Runs of a results folder or of one record file, with the tables of the report: fembench.notebook."""
    from fembench import notebook

    return notebook.load(path)


def __getattr__(name: str) -> str:
    if name == "__version__":
        from importlib.metadata import version

        return version("fembench")
    raise AttributeError(f"module 'fembench' has no attribute '{name}'")
