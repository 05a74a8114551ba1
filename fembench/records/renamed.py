"""Values renamed since the previous release, in files and options: the old ones are still read.

An entry stays for one release. The command line takes its renamed values from here; verbs and options that
were renamed are in `cli/renamed.py`.
"""

from collections.abc import Mapping
from typing import Any

RENAMED = {  # {field of a case or of weights: {old: new}}
    "problem": {"thesis": "corner-load"},
    "rule": {"thesis": "tasks"},
}
LATE = "the old name works in this release only"


def renamed(values: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """(the fields with the current names of their values, one line per renamed value)."""
    found, lines = dict(values), []
    for name, value in values.items():
        new = RENAMED.get(name, {}).get(value) if isinstance(value, str) else None
        if new:
            found[name] = new
            lines.append(f"{name} '{value}' is now called '{new}'; {LATE}")
    return found, lines
