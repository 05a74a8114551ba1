"""Verbs and options renamed since the previous release: the old names still work, with a note.

An entry stays for one release. `old` and `new` are the words as typed. Values that are also stored in files
are in `records/renamed.py`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from fembench.records.renamed import LATE
from fembench.records.renamed import RENAMED as VALUES


class Renaming(NamedTuple):
    """A verb, an option, or an option with its value that has a new name."""

    verb: str  # the verb that has the option; "" if a verb itself was renamed
    old: str
    new: str


RENAMED = (
    Renaming("", "reproduce", "study"),
    Renaming("", "app", "study app"),
    Renaming("", "pasl", "study pasl"),
    Renaming("", "schedule", "study schedule"),
    *(Renaming("weights", f"--rule {old}", f"--rule {new}") for old, new in VALUES["rule"].items()),
    Renaming("characterize", "--method I", "--method trains"),
    Renaming("characterize", "--method II", "--method pingpong"),
)


def renewed(words: Sequence[str]) -> tuple[list[str], list[Renaming]]:
    """(the words under their new names, the renamings used). Words after `--` are left alone."""
    end = words.index("--") if "--" in words else len(words)
    ours, used = list(words[:end]), []
    for entry in RENAMED:
        before = ours
        if not entry.verb:
            ours = entry.new.split() + ours[1:] if ours[:1] == [entry.old] else ours
        elif ours[:1] == [entry.verb]:
            ours = [entry.verb, *_replaced(ours[1:], entry.old.split(), entry.new.split())]
        used += [entry] if ours != before else []
    return ours + list(words[end:]), used


def _replaced(words: list[str], old: list[str], new: list[str]) -> list[str]:
    """The words with an option, or an option and its value, replaced; also in the form `--option=value`."""
    found: list[str] = []
    while words:
        name, equals, value = words[0].partition("=")
        if words[: len(old)] == old or [name, value] == old:
            found += new
            words = words[1 if equals else len(old) :]
        else:
            found.append(f"{new[0]}={value}" if equals and [name] == old else words[0])
            words = words[1:]
    return found


def advice(entry: Renaming) -> str:
    """One line that gives the new name."""
    place = f"fembench {entry.verb}" if entry.verb else "fembench"
    return f"'{place} {entry.old}' is now '{place} {entry.new}'; {LATE}"
