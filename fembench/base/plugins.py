"""What other installed packages bring, found by their entry points.

kind             name        what is entered in the group fembench.KIND
verbs            the verb    a module: docstring (its help), `arguments(parser)`, `run(options)`
options          the verb    a module: options that need the package, as the verb's module says
storages         its name    a StorageMethod
preconditioners  its name    a PreconditionerMethod
recurrences      its name    a RecurrenceMethod
policies         its name    a Policy of `--balance`

Looking takes some 0.01 s, which ranks spend only on names that are not ours.
"""

import functools
from typing import Any, Literal, TypeAlias

from fembench.base.errors import InputError

STUDIES = "fembench-studies"  # the package that brings what the program itself names
STUDIES_PATH = "PATH-OF-THE-CLONE/studies"  # what pip installs: no index has it
Kind: TypeAlias = Literal["verbs", "options", "storages", "preconditioners", "recurrences", "policies"]


@functools.cache
def _entered() -> Any:
    """All entry points of all installed packages."""
    from importlib import metadata

    return metadata.entry_points()


@functools.cache
def names(kind: Kind) -> tuple[str, ...]:
    """The names that installed packages enter."""
    return tuple(sorted({point.name for point in _entered().select(group=f"fembench.{kind}")}))


@functools.cache
def plugin(kind: Kind, name: str) -> Any:
    """What is entered under a name; None if no installed package has it."""
    found = next(iter(_entered().select(group=f"fembench.{kind}", name=name)), None)
    return found.load() if found else None


def needed(kind: Kind, name: str, what: str) -> Any:
    """The same. Raises InputError, with what to install for `what`, if there is none."""
    module = plugin(kind, name)
    if module is None:
        raise InputError(f"{what} needs {STUDIES}: pip install {STUDIES_PATH}")
    return module
