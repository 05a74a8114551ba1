"""fembench: a parallel finite-element benchmark for clusters whose hosts may be unequal.

From Python, what the verbs of the command line do:

    import fembench

    runs = fembench.sweep(cases=[{"mesh": "m", "ranks": [1, 2]}])
    runs.speedup("cg")                  # a table; runs.phases().to_pandas() is a DataFrame
    fembench.load("results/NAME")       # runs that were measured before

Functions: doctor, run, sweep, load, compare, history, page, shares, parts, tune, machine, predict, verb.
Exceptions: fembench.errors.
Every rank of a job imports this file, so it imports nothing before it is asked.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fembench import errors
    from fembench.workflows.characterize import machine
    from fembench.workflows.comparison import compare, history
    from fembench.workflows.doctor import doctor
    from fembench.workflows.mesh import parts
    from fembench.workflows.notebook import load, shares, verb
    from fembench.workflows.page import page
    from fembench.workflows.predict import predict
    from fembench.workflows.run import run
    from fembench.workflows.sweep import sweep
    from fembench.workflows.tune import tune

__all__ = ["compare", "doctor", "errors", "history", "load", "machine", "page", "parts"]
__all__ += ["predict", "run", "shares", "sweep", "tune", "verb"]
HOMES = {"compare": "comparison", "history": "comparison", "machine": "characterize", "parts": "mesh"}
HOMES |= dict.fromkeys(("load", "shares", "verb"), "notebook")

VERBS = {
    "characterize": "machine",
    "partition": "parts",
    "report": "page",
    "weights": "shares",
}  # by other names


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("fembench")
    if name not in __all__:
        verb = f"; `fembench {name}` is fembench.{VERBS[name]}" if name in VERBS else ""
        raise AttributeError(f"module 'fembench' has no attribute '{name}'{verb}")
    import importlib

    if name == "errors":
        return importlib.import_module("fembench.errors")
    home = importlib.import_module(f"fembench.workflows.{HOMES.get(name, name)}")
    return getattr(home, name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
