"""What an executable contains besides code: initial data, and the names of addresses."""

import hashlib
import re
import shutil
import struct
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from fembench.errors import InputError

_NAMED = re.compile(r"^([0-9a-f]+) +R_\S+ +([A-Za-z_][\w]*)")
_MOVED = re.compile(r"^([0-9a-f]+) +R_\S+_RELATIVE +\*ABS\*\+0x([0-9a-f]+)")
BASE = 0x10000000  # where a position-independent executable is taken to be loaded


@dataclass(frozen=True)
class Image:
    """The loaded segments of an executable, and its symbols. Without a file: neither."""

    parts: tuple[tuple[int, bytes], ...] = ()  # address, contents
    symbols: dict[int, str] = field(default_factory=dict)  # address of a symbol or of a pointer to it -> name
    pointers: dict[int, int] = field(
        default_factory=dict
    )  # address -> the address that the loader puts there
    wide: bool = True  # x86-64, not i386
    base: int = 0  # added to all addresses of the file
    digest: str = ""  # SHA-256 of the file

    @property
    def open_mpi(self) -> bool:
        """Whether it was built for Open MPI, not for MPICH."""
        return "ompi_mpi_comm_world" in self.symbols.values()

    def name(self, address: int) -> str:
        """The symbol of the linker at an address, or ''."""
        return self.symbols.get(address - self.base, "")

    def read(self, address: int, width: int) -> int | None:
        """The initial value at an address; None outside of data. Pointers to symbols hold their address."""
        address -= self.base
        if address in self.symbols or address in self.pointers:
            return self.base + self.pointers.get(address, address)
        for start, data in self.parts:
            if start <= address and address + width <= start + len(data):
                return int.from_bytes(data[address - start : address - start + width], "little")
        return None


def image_of(path: Path) -> Image:
    """The image of an x86 ELF executable. Raises InputError for anything else."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; expected an executable") from error
    if data[:4] != b"\x7fELF" or len(data) < 64 or data[5] != 1:
        raise InputError(f"{path}: not an ELF file; expected an x86 executable for Linux")
    wide = data[4] == 2
    machine = struct.unpack_from("<H", data, 18)[0]
    if machine not in (3, 62):
        raise InputError(f"{path}: a program for machine {machine} of ELF; expected x86-64 or i386")
    try:
        parts = _segments(data, wide)
    except (struct.error, ValueError, OverflowError, MemoryError) as error:
        raise InputError(f"{path}: its program headers are damaged; expected a whole executable") from error
    listed = objdump("-R", path, check=False)
    named, moved = ([rule.match(line) for line in listed.splitlines()] for rule in (_NAMED, _MOVED))
    return Image(
        parts,
        {int(found[1], 16): found[2] for found in named if found},
        {int(found[1], 16): int(found[2], 16) for found in moved if found},
        wide,
        BASE if struct.unpack_from("<H", data, 16)[0] == 3 else 0,
        hashlib.sha256(data).hexdigest(),
    )


def objdump(option: str, path: Path, *, check: bool = True) -> str:
    """What objdump prints about an executable. Raises InputError."""
    if not shutil.which("objdump"):
        raise InputError("no objdump; expected GNU binutils to be installed")
    done = subprocess.run(["objdump", option, str(path)], capture_output=True, text=True, check=False)
    if done.returncode and check:
        raise InputError(f"{path}: {(done.stderr.strip().splitlines() or ['objdump failed'])[-1]}")
    return done.stdout


def _segments(data: bytes, wide: bool) -> tuple[tuple[int, bytes], ...]:
    """(address, bytes) of every part of the program that is loaded into memory."""
    at = struct.unpack_from("<Q" if wide else "<I", data, 32 if wide else 28)[0]
    size, count = struct.unpack_from("<HH", data, 54 if wide else 42)
    parts = []
    for k in range(count):
        if wide:
            kind, _, offset, address, _, filed, loaded = struct.unpack_from("<IIQQQQQ", data, at + k * size)
        else:
            kind, offset, address, _, filed, loaded = struct.unpack_from("<IIIIII", data, at + k * size)
        if kind == 1:
            parts.append((address, data[offset : offset + filed] + bytes(loaded - filed)))
    return tuple(parts)
