"""Verbs and options that had another name in the release before: they still work and say what to type.

An entry stands here for one release. `old` and `new` are the words as typed; "*" as the verb: any verb.
"""

from collections.abc import Sequence
from typing import NamedTuple


class Renaming(NamedTuple):
    """One verb, option, or option with its value that has a new name."""

    verb: str  # whose option it is; "" for a verb
    old: str
    new: str


RENAMED = (
    Renaming("", "reproduce", "study"),
    Renaming("", "app", "study app"),
    Renaming("", "pasl", "study pasl"),
    Renaming("", "schedule", "study schedule"),
    Renaming("weights", "--rule thesis", "--rule tasks"),
)


def renewed(words: Sequence[str]) -> tuple[list[str], list[Renaming]]:
    """(the words as they are typed now, what was replaced); words after `--` are not fembench's."""
    end = words.index("--") if "--" in words else len(words)
    ours, used = list(words[:end]), []
    for entry in RENAMED:
        old, new = entry.old.split(), entry.new.split()
        if not entry.verb:
            places = [0] if ours[:1] == old else []
        else:
            ours = _apart(ours, entry) if ours[:1] == [entry.verb] else ours
            places = [
                k for k in range(1, len(ours)) if ours[k : k + len(old)] == old and ours[0] == entry.verb
            ]
        for k in reversed(places):
            ours[k : k + len(old)] = new
            used.append(entry)
    return ours + list(words[end:]), used


def _apart(words: list[str], entry: Renaming) -> list[str]:
    """`--option=value` as two words where the option is that of the entry."""
    option = entry.old.split()[0]
    return [w for word in words for w in (word.split("=", 1) if word.startswith(f"{option}=") else [word])]


def advice(entry: Renaming) -> str:
    """The line that says what to type."""
    place = f"fembench {entry.verb}" if entry.verb else "fembench"
    return f"'{place} {entry.old}' is now '{place} {entry.new}'; the old name works until the next release"
