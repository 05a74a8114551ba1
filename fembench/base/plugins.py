"""What other installed packages bring, found by their entry points.

kind      group               name         module
verbs     fembench.verbs      the verb     docstring (its help), `arguments(parser)`, `run(options)`
options   fembench.options    the verb     options that need the package, as the verb's module says
scores    fembench.scores     "programs"   predictions of programs that `validate` scores
"""

import functools
from importlib import metadata
from types import ModuleType
from typing import Literal, TypeAlias

from fembench.base.errors import InputError

STUDIES = "fembench-studies"  # the package that brings what the program itself names
Kind: TypeAlias = Literal["verbs", "options", "scores"]


@functools.cache
def names(kind: Kind) -> tuple[str, ...]:
    """The names that installed packages enter."""
    return tuple(sorted({point.name for point in metadata.entry_points(group=f"fembench.{kind}")}))


@functools.cache
def plugin(kind: Kind, name: str) -> ModuleType | None:
    """The module entered under a name; None if no installed package has one."""
    found = next(iter(metadata.entry_points(group=f"fembench.{kind}", name=name)), None)
    return found.load() if found else None


def needed(kind: Kind, name: str, what: str) -> ModuleType:
    """The same. Raises InputError, with what to install for `what`, if there is none."""
    module = plugin(kind, name)
    if module is None:
        raise InputError(f"{what} needs {STUDIES}: pip install {STUDIES}")
    return module
