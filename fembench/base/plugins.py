"""What other installed packages bring, found by their entry points.

kind             name        what is entered in the group fembench.KIND
verbs            the verb    a module: docstring (its help), `arguments(parser)`, `run(options)`
options          the verb    a module: options that need the package, as the verb's module says
storages         its name    a StorageMethod
preconditioners  its name    a PreconditionerMethod
recurrences      its name    a RecurrenceMethod
policies         its name    a Policy of `--balance`

Looking takes some 0.01 s, which ranks spend only on names that are not ours.

The modules compiled at the installation are loaded, absent, or unusable here.
"""

import functools
import importlib
import platform
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, TypeAlias

from fembench.base.errors import InputError

STUDIES = "fembench-studies"  # the package that brings what the program itself names
STUDIES_PATH = "PATH-OF-THE-CLONE/studies"  # what pip installs: no index has it
Kind: TypeAlias = Literal["verbs", "options", "storages", "preconditioners", "recurrences", "policies"]
SINGULAR: dict[Kind, str] = {
    "storages": "storage",
    "preconditioners": "preconditioner",
    "recurrences": "recurrence",
    "policies": "policy",
}  # of the kinds that a case names
_brought: dict[str, str] = {}  # "policy patient" -> "fembench-hello 1.0", as loaded here


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
    if found and found.dist and kind in SINGULAR:
        _brought[f"{SINGULAR[kind]} {name}"] = f"{found.dist.name} {found.dist.version}"
    return found.load() if found else None


def brought() -> dict[str, str]:
    """What this process has loaded from other packages: "policy patient" -> "fembench-hello 1.0"."""
    return dict(_brought)


def missing(used: Mapping[str, str]) -> str:
    """A line on the first of these, as in `brought`, that no installed package has; ""."""
    kinds: dict[str, Kind] = {word: kind for kind, word in SINGULAR.items()}
    for what, package in used.items():
        word, _, name = what.partition(" ")
        if word in kinds and name not in names(kinds[word]):
            install = f"pip install {package.partition(' ')[0]}"
            return f"{word} '{name}' is from {package}, which is not installed: {install}"
    return ""


def needed(kind: Kind, name: str, what: str) -> Any:
    """The same. Raises InputError, with what to install for `what`, if there is none."""
    module = plugin(kind, name)
    if module is None:
        raise InputError(f"{what} needs {STUDIES}: pip install {STUDIES_PATH}")
    return module


def compiled_module(name: str) -> ModuleType | None:
    """The module; None if not compiled. Raises InputError if this host cannot load it."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        others = _built_for_others(name)
        if not others:
            return None
        why = f"it is {others[0].name}, for another Python or processor"
    except ImportError as error:
        why = str(error)
    raise InputError(
        f"host {platform.node()} cannot load the compiled module {name} ({why}): "
        "leave this host out, or install fembench where it runs on all hosts, such as on the oldest one"
    )


def _built_for_others(name: str) -> list[Path]:
    package, _, module = name.rpartition(".")
    return [path for folder in sys.modules[package].__path__ for path in Path(folder).glob(f"{module}.*.so")]
