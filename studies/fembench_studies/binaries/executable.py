"""A compiled MPI program: its functions as blocks, and the symbols that it loads.

After Calzeta and de Souza (2008): objdump gives the blocks (`blocks`), from which the control flow follows
(`flow`). What a run of the program takes is rehearsed (`rehearsal`); how often it passes each block is
counted in a rehearsal (`counts`), or drawn as in the source (`static`).
"""

import hashlib
import re
import shutil
import struct
import subprocess
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

from fembench.errors import InputError
from fembench_studies.binaries.blocks import Function, Vertex, class_of, functions_of
from fembench_studies.binaries.flow import Flow

_LOADED = re.compile(r"^[0-9a-f]+ +R_\S+ +([A-Za-z_]\w*)", re.MULTILINE)
ENDS = ("exit", "_exit", "abort", "MPI_Abort", "__stack_chk_fail", "__assert_fail")

ADDED: tuple[str, ...] = ("_init", "_fini", "_start", "__do_global_dtors_aux", "frame_dummy")  # by the linker
ADDED += ("register_tm_clones", "deregister_tm_clones")


class Executable:
    """All functions of an executable; `costs`: class of instruction -> seconds."""

    def __init__(self, text: str, costs: Mapping[str, float], digest: str = "") -> None:
        self.functions = functions_of(text, lambda i: costs[class_of(i)])
        if "main" not in self.functions:
            raise InputError("no function main in the executable; expected one that is not stripped")
        self.entry = self.functions["main"]
        self.digest = digest  # SHA-256 of the file
        self._flows: dict[str, Flow] = {}

    def flow(self, function: Function) -> Flow:
        """The control flow of a function."""
        if function.name not in self._flows:
            self._flows[function.name] = Flow(function, lambda v: called(v) in ENDS)
        return self._flows[function.name]

    @cached_property
    def owner(self) -> dict[int, Function]:
        """Vertex -> its function."""
        return {a: f for f in self.functions.values() for a in f.vertices}

    @cached_property
    def own(self) -> list[Vertex]:
        """The vertices of the program itself, without stubs of libraries and what the linker adds."""
        functions = [f for f in self.functions.values() if "@plt" not in f.name]
        return [v for f in functions if f.name not in ADDED for v in f.vertices.values()]

    def branches(self) -> list[int]:
        """Where its conditional branches are."""
        return [v.start for v in self.own if v.kind == "branch"]

    def callee(self, v: Vertex) -> Function | None:
        """The function of the program that a vertex calls or jumps to; None for its own and for libraries."""
        function = self.owner.get(v.target) if v.kind in ("call", "jump") and v.target is not None else None
        if function is None or function.start != v.target or "@plt" in function.name:
            return None
        return None if v.kind == "jump" and function is self.owner[v.start] else function


def called(v: Vertex) -> str:
    """The name of the function that a vertex calls, without that of its version; '' if there is none."""
    return v.name.removesuffix("@plt").split("@")[0]


def load(path: Path, costs: Mapping[str, float]) -> Executable:
    """An executable. Raises InputError."""
    check(path)
    return Executable(objdump("-d", path), costs, hashlib.sha256(path.read_bytes()).hexdigest())


def check(path: Path) -> bool:
    """Whether an x86 executable for Linux is one of 64 bits. Raises InputError for anything else."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; expected an executable") from error
    if data[:4] != b"\x7fELF" or len(data) < 64 or data[5] != 1:
        raise InputError(f"{path}: not an ELF file; expected an x86 executable for Linux")
    machine = struct.unpack_from("<H", data, 18)[0]
    if machine not in (3, 62):
        raise InputError(f"{path}: a program for machine {machine} of ELF; expected x86-64 or i386")
    return data[4] == 2


def loaded(path: Path) -> set[str]:
    """The functions and data of libraries that an executable loads."""
    return set(_LOADED.findall(objdump("-R", path, check=False)))


def compile_c(text: str, file: Path) -> None:
    """Compile a source in C: a library (`.so`) or a program. Raises InputError."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if not compiler:
        raise InputError("a rehearsal needs a C compiler; expected gcc, or --static")
    source = file.with_suffix(".c")
    source.write_text(text)
    shared = ["-shared", "-fPIC"] if file.suffix == ".so" else []
    words = [compiler, "-O2", *shared, "-pthread", "-o", str(file), str(source), "-ldl"]
    made = subprocess.run(words, capture_output=True, text=True, check=False)
    if made.returncode:
        raise InputError(f"a rehearsal cannot be compiled: {made.stderr.strip().splitlines()[-1]}")


def objdump(option: str, path: Path, *, check: bool = True) -> str:
    """What objdump prints about an executable. Raises InputError."""
    if not shutil.which("objdump"):
        raise InputError("no objdump; expected GNU binutils to be installed")
    done = subprocess.run(["objdump", option, str(path)], capture_output=True, text=True, check=False)
    if done.returncode and check:
        raise InputError(f"{path}: {(done.stderr.strip().splitlines() or ['objdump failed'])[-1]}")
    return done.stdout
