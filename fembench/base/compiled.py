"""The modules compiled at the installation: loaded, absent, or unusable here."""

import importlib
import platform
import sys
from pathlib import Path
from types import ModuleType

from fembench.base.errors import InputError


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
