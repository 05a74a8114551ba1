"""Verbs and options that had another name in the release before: they still work and say what to type.

An entry stands here for one release. `old` and `new` are the words as typed.
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
        before = ours
        if not entry.verb:
            ours = entry.new.split() + ours[1:] if ours[:1] == [entry.old] else ours
        elif ours[:1] == [entry.verb]:
            ours = [entry.verb, *_replaced(ours[1:], entry.old.split(), entry.new.split())]
        used += [entry] if ours != before else []
    return ours + list(words[end:]), used


def _replaced(words: list[str], old: list[str], new: list[str]) -> list[str]:
    """The words with an option, or an option and its value, by its new name; `--option=value` too."""
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
    """The line that says what to type."""
    place = f"fembench {entry.verb}" if entry.verb else "fembench"
    return f"'{place} {entry.old}' is now '{place} {entry.new}'; the old name works until the next release"
