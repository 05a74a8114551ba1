"""Lists of hosts as batch systems write them: 'n[1-3,07],login' and, for the tasks on each, '2(x3),1'."""

import platform
import re
from collections.abc import Iterable, Iterator, Sequence

from fembench.base.errors import InputError, shown

MOST_HOSTS = 100_000
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")
_NUMBERED = re.compile(r"(.*?)(\d{1,9})(\D*)")
_COUNT = re.compile(r"(\d{1,6})(?:\(x(\d{1,6})\))?")


def expand_hosts(text: str, where: str) -> list[str]:
    """The names in a list such as 'n[1-3,07],r[0-1]c[1-2],login', in its order. Raises InputError.

    `where` names the list in messages. Source: Slurm, `man scontrol`, SHOW HOSTNAMES.
    """
    found: list[str] = []
    for word in _words(text, where):
        names = [""]
        for piece in re.findall(r"\[[^][]*\]|[^][]+|.", word):
            if piece.startswith("[") and len(piece) > 1:
                numbers = list(_numbers(piece[1:-1], text, where))
                _check_count(len(names) * len(numbers), text, where)
                names = [name + number for name in names for number in numbers]
            elif piece in "[]":
                raise _unreadable(text, where)
            else:
                names = [name + piece for name in names]
        found += names
        _check_count(len(found), text, where)
    return found


def _check_count(n_hosts: int, text: str, where: str) -> None:
    if n_hosts > MOST_HOSTS:
        raise InputError(f"{where} = '{shown(text)}': expected at most {MOST_HOSTS} hosts")


def expand_counts(text: str, where: str) -> list[int]:
    """The numbers in a list such as '2(x3),1': 2, 2, 2, 1. Raises InputError."""
    found: list[int] = []
    for word in text.split(","):
        match = _COUNT.fullmatch(word.strip())
        times = int(match.group(2) or 1) if match else 0
        if not match or len(found) + times > MOST_HOSTS:
            raise InputError(f"{where} = '{shown(text)}': expected counts such as 2(x3),1")
        found += [int(match.group(1))] * times
    return found


def folded(names: Iterable[str]) -> str:
    """The names as a short list, 'n[1-3],login'; `expand_hosts` gives them back in their order."""
    groups: list[tuple[tuple[str, str], list[str]]] = []  # text before and after a number, the numbers
    for name in names:
        match = _NUMBERED.fullmatch(name)
        head, number, tail = match.groups() if match else (name, "", "")
        if match and groups and groups[-1][0] == (head, tail) and groups[-1][1][0]:
            groups[-1][1].append(number)
        else:
            groups.append(((head, tail), [number]))
    return ",".join(
        f"{head}[{_ranges(numbers)}]{tail}" if len(numbers) > 1 else f"{head}{numbers[0]}{tail}"
        for (head, tail), numbers in groups
    )


def same_host(a: str, b: str) -> bool:
    """Whether two names are of one host: one of them may lack the domain."""
    return a == b or (("." in a) != ("." in b) and a.split(".")[0] == b.split(".")[0])


def is_this_host(name: str) -> bool:
    """Whether a name is of the host that this process runs on, with or without its domain."""
    return same_host(name, platform.node())


def one_name_each(names: Iterable[str], where: str) -> dict[str, str]:
    """{name: the name that its host was given first}, for hosts listed both with and without their domain.

    Raises InputError if a name without a domain fits several hosts; `where` names the list.
    """
    place = {name: k for k, name in enumerate(dict.fromkeys(names))}
    complete: dict[str, list[str]] = {}
    for name in place:
        if "." in name:
            complete.setdefault(name.split(".")[0], []).append(name)
    found = dict[str, str]()
    for short in (name for name in place if name in complete):
        if len(complete[short]) > 1:
            fits = " or ".join(map(shown, complete[short][:2]))
            raise InputError(f"{where}: host {shown(short)} may be {fits}; expected its domain as well")
        first, second = sorted((short, *complete[short]), key=lambda name: place[name])
        found[second] = first
    return found


def _ranges(numbers: Sequence[str]) -> str:
    """'1', '2', '3', '07' as '1-3,07'."""
    found: list[list[str]] = []  # first and last of each range
    for number in numbers:
        if found and number == str(int(found[-1][1]) + 1).zfill(len(found[-1][0])):
            found[-1][1] = number
        else:
            found.append([number, number])
    return ",".join(first if first == last else f"{first}-{last}" for first, last in found)


def _words(text: str, where: str) -> Iterator[str]:
    """The parts between the commas that are outside brackets."""
    for word in re.split(r",(?![^[]*\])", text):
        if not word.strip():
            raise _unreadable(text, where)
        yield word.strip()


def _numbers(inside: str, text: str, where: str) -> Iterator[str]:
    """'1-3,07' as '1', '2', '3', '07'; leading zeros are kept."""
    for part in inside.split(","):
        match = _RANGE.fullmatch(part.strip())
        first, last = (match.group(1), match.group(2) or match.group(1)) if match else ("1", "0")
        if not 0 <= int(last) - int(first) < MOST_HOSTS:
            raise _unreadable(text, where)
        yield from (str(n).zfill(len(first)) for n in range(int(first), int(last) + 1))


def _unreadable(text: str, where: str) -> InputError:
    return InputError(f"{where} = '{shown(text)}': expected a list of hosts such as n[1-3,7],login")
