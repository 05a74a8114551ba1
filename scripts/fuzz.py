"""Feed mutated files and texts to every reader of fembench; only its own one-line errors may come out.

Each reader starts from valid files (fuzz_inputs.py). Trees (TOML, JSON) lose keys, get values of other types,
huge or negative numbers, nan, long or nested or doubled values; texts and bytes are cut, doubled and
overwritten, numbers in them replaced. A finding is any exception but FembenchError, a case of more than
--limit seconds, anything printed, a file left behind, or a valid file refused. Hypothesis shrinks it; it is
printed, and kept in --keep.
  python scripts/fuzz.py --cases 2000
  python scripts/fuzz.py --cases 100000 --only records,profiles
"""

import argparse
import contextlib
import copy
import faulthandler
import io
import json
import math
import os
import random
import re
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path

from fuzz_inputs import Reader, readers
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from fembench.base.errors import FembenchError
from fembench.base.progress import telling

ROOM = 3 << 30  # bytes of address space beyond what is used at the start
STUCK = 60.0  # seconds after which a case that not even a signal stops ends the script
NUMBERS = [
    "0",
    "-1",
    "1",
    "2",
    "nan",
    "inf",
    "-inf",
    "1e308",
    "1e999",
    "99999999999",
    "4294967297",
    "-0.0",
    "1e-320",
]
NUMBERS += ["9" * 400, "9" * 5000, "0x1F", "1_0", "²", "", "x", "1.5", "18446744073709551616"]
VALUES = [
    None,
    True,
    0,
    -1,
    1,
    2**31,
    2**63 - 1,
    2**63,
    -(2**64),
    1e308,
    -1e308,
    5e-324,
    math.nan,
    math.inf,
    -math.inf,
]
VALUES += [
    "",
    "x",
    "x" * 10_000,
    "\x00",
    "ß²\u202e",
    "../x",
    "a\nb",
    [],
    {},
    [[]],
    [None],
    {"": {}},
    0.5,
    "nan",
    "1e999",
]
CHUNKS = [
    b"",
    b"\x00",
    b"\xff",
    b"\xff\xfe",
    b"\n",
    b"\r",
    b"\r\n",
    b" ",
    b"\t",
    b"{",
    b"}",
    b"[",
    b"]",
    b"(",
    b")",
    b'"',
]
CHUNKS += [
    b"'",
    b",",
    b";",
    b":",
    b"=",
    b"#",
    b"//",
    b"<",
    b">",
    b"<<",
    b"$",
    b"%%",
    b"*",
    b"@",
    b"\\",
    b"-",
    b"\xc2\xa0",
]
CHUNKS += [
    b"(" * 3000,
    b"[" * 3000,
    b"{" * 3000,
    b"-" * 3000,
    b"A" * 70_000,
    b"\xe2\x80\xae",
    b"0",
    b"9" * 30,
    b"1e999",
]
NUMBER = re.compile(rb"[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?")
MUTATION = st.tuples(st.integers(0, 11), st.integers(0, 2**20), st.integers(0, 2**20))
MUTATIONS = st.lists(MUTATION, min_size=0, max_size=4)


class Stuck(BaseException):
    """A case took too long."""


class Finding(Exception):
    """What a reader must not do."""


class Hang(BaseException):
    """The same, and too slow to be shrunk."""


def mutated_tree(tree: object, how: int, where: int, what: int) -> object:
    """The tree with one of its values removed, replaced, doubled, renamed or nested."""
    tree = copy.deepcopy(tree)
    places = list(_places(tree))
    if not places:
        return VALUES[what % len(VALUES)]
    inside, key = places[where % len(places)]
    value = inside[key]
    if how <= 1:
        del inside[key]
    elif how <= 5:
        inside[key] = copy.deepcopy(VALUES[what % len(VALUES)])
    elif how == 6 and isinstance(value, list):
        inside[key] = value * (2 + what % 3) if what % 2 else value[: what % (len(value) + 1)]
    elif how == 7 and isinstance(inside, dict):
        inside[f"{key}{'_x'[what % 2 :]}"] = inside.pop(key)
    elif how == 8:
        nested: object = value
        for _ in range(what % 120):
            nested = [nested] if what % 2 else {"x": nested}
        inside[key] = nested
    elif how == 9 and isinstance(value, (int, float)) and not isinstance(value, bool):
        inside[key] = value * (-1, 0, 1e6, 1e-9, 2**40, 0.5)[what % 6]
    elif how == 10:
        other, name = places[what % len(places)]
        inside[key] = copy.deepcopy(other[name])
    else:
        inside[key] = random.Random(what).choice([str(value)[:200], [value], {"x": value}, None])
    return tree


def _places(tree):
    """(container, key or index) of everything in a tree."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in list(items):
        yield tree, key
        yield from _places(value)


def mutated_bytes(data: bytes, how: int, where: int, what: int) -> bytes:
    """The bytes with a piece cut, doubled, moved or overwritten, or a number replaced."""
    at = where % (len(data) + 1)
    if how <= 3 and (numbers := list(NUMBER.finditer(data))):
        found = numbers[where % len(numbers)]
        return data[: found.start()] + NUMBERS[what % len(NUMBERS)].encode() + data[found.end() :]
    chunk = CHUNKS[what % len(CHUNKS)]
    if how <= 5:
        return data[:at] + chunk + data[at:]
    if how == 6:
        return data[:at] + chunk + data[at + max(len(chunk), 1) :]
    if how == 7:
        return data[:at]
    if how == 8:
        return data[:at] + data[at + 1 + what % 200 :]
    if how == 9:
        return data[:at] + data[at : at + what % 500] + data[at:]
    lines = data.split(b"\n")
    line = where % len(lines)
    if how == 10:
        return b"\n".join(lines[:line] + lines[line + 1 :])
    return b"\n".join([*lines[:line], lines[what % len(lines)], *lines[line:]])


def toml(tree: object) -> str:
    """A tree as TOML: one key a line, all below it inline."""
    if not isinstance(tree, dict):
        return _inline(tree)
    return "".join(f"{json.dumps(str(k))} = {_inline(v)}\n" for k, v in tree.items())


def _inline(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(str(k))} = {_inline(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    if isinstance(value, float) and not math.isfinite(value):
        return {math.inf: "inf", -math.inf: "-inf"}.get(value, "nan")
    return json.dumps(value)


def content(reader: Reader, choice: int, as_bytes: bool, mutations: list[tuple[int, int, int]]) -> bytes:
    """A seed of the reader, mutated as a tree where it is one, or as bytes."""
    start = reader.seeds[choice % len(reader.seeds)]
    if isinstance(start, bytes):
        data, mutate = start, True
    else:
        tree: object = start
        for mutation in [] if as_bytes else mutations:
            tree = mutated_tree(tree, *mutation)
        data, mutate = (toml(tree) if reader.toml else json.dumps(tree)).encode(), as_bytes
    for mutation in mutations if mutate else []:
        data = mutated_bytes(data, *mutation)
    return data


def check(reader: Reader, data: bytes, limit: float) -> None:
    """One case. Raises Finding."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
        path = Path(folder) / f"case{reader.suffix}"
        path.write_bytes(data)
        said = io.StringIO()
        signal.setitimer(signal.ITIMER_REAL, limit)
        faulthandler.dump_traceback_later(STUCK, exit=True, file=sys.__stderr__)
        try:
            with (
                contextlib.redirect_stdout(said),
                contextlib.redirect_stderr(said),
                warnings.catch_warnings(),
                telling(None),  # notes are no errors
            ):
                warnings.simplefilter("error")
                reader.read(path)
        except FembenchError as error:
            if "\n" in str(error):
                raise Finding(f"a message of several lines: {str(error)[:200]!r}") from error
            if len(str(error).replace(str(path), "")) > 1000:
                raise Finding(f"a message of {len(str(error))} characters") from error
        except Stuck:
            raise Hang(f"no end after {limit:g} s\n{traceback.format_exc(limit=-3)}") from None
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            raise Finding("".join(traceback.format_exception(error, limit=-3))) from None
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            faulthandler.cancel_dump_traceback_later()
        left = sorted(p.name for p in Path(folder).rglob("*") if p != path)
        if said.getvalue() or left:
            raise Finding(f"printed {said.getvalue()[:200]!r}, left {left}")


def valid(reader: Reader, choice: int) -> str:
    """What the reader says against one of its seeds; "" if it takes it, as it must."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
        path = Path(folder) / f"case{reader.suffix}"
        path.write_bytes(content(reader, choice, False, []))
        try:
            reader.read(path)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    return ""


def hunt(reader: Reader, cases: int, limit: float, start: int) -> tuple[int, bytes, str]:
    """(cases that were run, the shrunk input that fails or b"", what it does or "")."""
    done, last = 0, b""

    @seed(start)
    @settings(
        max_examples=cases,
        deadline=None,
        database=None,
        report_multiple_bugs=False,
        print_blob=False,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(st.integers(0, len(reader.seeds) - 1), st.integers(0, 3), MUTATIONS)
    def case(choice: int, way: int, mutations: list[tuple[int, int, int]]) -> None:
        nonlocal done, last
        data = content(reader, choice, way == 0, mutations)
        done += 1
        try:
            check(reader, data, limit)
        except (Finding, Hang):
            last = data
            raise

    try:
        case()
    except (Exception, Hang) as error:
        return done, last, str(error)
    return done, b"", ""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=100_000, metavar="N", help="over all readers")
    parser.add_argument("--only", default="", metavar="NAME,...", help="readers (default: all)")
    parser.add_argument("--limit", type=float, default=10.0, metavar="SECONDS", help="for one case")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="other seeds give other cases")
    parser.add_argument("--keep", default="", metavar="FOLDER", help="write failing inputs here")
    options = parser.parse_args()
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = tempfile.gettempdir()

    def stuck(*_):
        raise Stuck

    signal.signal(signal.SIGALRM, stuck)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TMPDIR"] = folder
        found = readers(Path(folder))
        words = options.only.split(",") if options.only else []
        chosen = [r for r in found if not words or r.name in words]
        if not chosen:
            parser.error(f"--only {options.only}: expected some of {', '.join(r.name for r in found)}")
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, resource.RLIM_INFINITY))
        bad = total = 0
        for k, reader in enumerate(chosen):
            share = options.cases // len(chosen) + (k < options.cases % len(chosen))
            begin = time.perf_counter()
            refused = [message for choice in range(len(reader.seeds)) if (message := valid(reader, choice))]
            if refused:
                bad += 1
                print(f"FOUND in {reader.name}: a valid input is refused: {refused[0][:600]}", flush=True)
            done, data, message = hunt(reader, share, options.limit, options.seed) if share else (0, b"", "")
            total += done
            print(f"{reader.name:22s} {done:7d} cases {time.perf_counter() - begin:7.1f} s", flush=True)
            if message:
                bad += 1
                print(f"FOUND in {reader.name}: {data[:600]!r}\n{message}", flush=True)
                if options.keep:
                    Path(options.keep).mkdir(parents=True, exist_ok=True)
                    (Path(options.keep) / f"{reader.name}{reader.suffix}").write_bytes(data)
    print(f"{total} cases, {len(chosen)} readers, {bad} of them fail")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
