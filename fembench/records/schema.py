"""What all files share: the number of their schema, their time, and large arrays, packed.

Only files of today's schema are read. A record of 10 000 ranks stays small:
whole numbers are exact. Of other numbers 16 significant bits are kept: a relative error
of at most 2**-16 (0.0015 %), far below the noise of any time. Each number is four
bytes: an unsigned integer, or IEEE single precision, of which the last byte is left
out. All first bytes come first, then all second ones, with the first index fastest, so
that neighbours resemble each other; zlib compresses them, base64 makes them text.
"""

from __future__ import annotations

import base64
import datetime
import math
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from fembench.base.config import convert, read_json
from fembench.base.errors import InputError, shown

if TYPE_CHECKING:  # the command line reads the structs without numpy
    import numpy as np
    import numpy.typing as npt


T = TypeVar("T")
YEARS = range(1970, 2200)  # which clocks of computers show


def read(
    path: Path | str,
    kind: type[T],
    newest: int,
    what: str,
    *,
    has: str,
    verb: str,
    tree: dict[str, Any] | None = None,
) -> T:
    """The `kind` in a JSON file, `what` of schema `newest`, which has the key `has`.

    verb: of fembench, that writes such files; tree: the content, if it has been read

    Raises InputError for anything else.
    """
    tree = read_json(path, dict, f"{what} of fembench {verb}") if tree is None else tree
    version = tree.get("schema")
    if type(version) is not int or has not in tree:
        raise InputError(f"{path}: not {what}; expected a file of fembench {verb}")
    if version != newest:
        how = "it is newer: update fembench" if version > newest else "measure again"
        raise InputError(f"{path}: schema {version} of {what}; expected {newest}: {how}")
    return convert(tree, kind, where=str(path))


def check_time(text: str, where: str) -> None:
    """Raises InputError unless the text is a time in ISO 8601, with its zone."""
    try:
        when = datetime.datetime.fromisoformat(text)
        known = when.tzinfo is not None and when.year in YEARS
    except ValueError:
        known = False
    if not known:
        raise InputError(f"{where} = '{shown(text)}': expected a time such as 2026-01-02T03:04:05+00:00")


class Packed(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An array of non-negative whole numbers below 2**32, or of finite numbers, in text."""

    shape: tuple[int, ...]
    whole: bool
    data: str

    def __len__(self) -> int:
        return (*self.shape, 0)[0]

    @property
    def _bytes(self) -> int:
        return 4 if self.whole else 3

    def numbers(self) -> npt.NDArray[np.float64]:
        """The array. Raises ValueError for damaged data."""
        import numpy as np

        n = math.prod(self.shape)
        try:
            raw = zlib.decompressobj().decompress(base64.b64decode(self.data), self._bytes * n + 1)
        except zlib.error as error:
            raise ValueError("damaged data") from error
        if len(raw) != self._bytes * n:
            raise ValueError(f"data of {len(raw)} bytes or more; expected {self._bytes * n}")
        words = np.zeros((n, 4), np.uint8)
        words[:, : self._bytes] = np.frombuffer(raw, np.uint8).reshape(self._bytes, n).T
        values = words.view(">u4" if self.whole else ">f4").astype(float)
        return values.reshape(self.shape[::-1]).T


LARGE = 50_000  # numbers in an array; smaller ones stay readable


def rows(values: npt.NDArray[Any]) -> tuple[Any, ...] | Packed:
    """An array as a record holds it: packed if it is large, otherwise nested tuples."""
    return packed(values) if values.size > LARGE else _tuples(values.tolist())


def _tuples(values: Any) -> Any:
    return tuple(map(_tuples, values)) if isinstance(values, list) else values


def packed(values: npt.ArrayLike) -> Packed:
    """An array of any shape, packed."""
    import numpy as np

    array = np.asarray(values)
    whole = array.dtype.kind in "iu"
    flat = array.T.ravel()
    words = flat.astype(np.uint32) if whole else flat.astype(np.float32).view(np.uint32) + np.uint32(0x80)
    planes = words.astype(">u4").view(np.uint8).reshape(-1, 4)[:, : 4 if whole else 3].T
    text = base64.b64encode(zlib.compress(planes.tobytes())).decode()
    return Packed(shape=array.shape, whole=whole, data=text)


def numbers(values: Sequence[Any] | Packed) -> npt.NDArray[np.float64]:
    """The array of packed or plain numbers. Raises ValueError if ragged or damaged."""
    import numpy as np

    return values.numbers() if isinstance(values, Packed) else np.array(values, float)
