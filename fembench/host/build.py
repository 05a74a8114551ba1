"""The build of fembench: its commit, whether it is unchanged, its hash (rule E7).

In a source tree, including an editable install, every run looks up all three. An
installed package has no tree: when it is built, CMake runs `python build.py TREE FILE`
and installs FILE next to the modules. So only the standard library is imported here.
"""

import hashlib
import re
import sys
from pathlib import Path
from typing import NamedTuple

SOURCES = ("fembench", "CMakeLists.txt", "pyproject.toml")  # what determines a build
SUFFIXES = {".py", ".pyi", ".pyx", ".pxd", ".c", ".h", ".toml", ".json", ".txt"}
PACKAGE = Path(__file__).resolve().parent.parent
BUILT = "built.json"  # in an installed package


class Build(NamedTuple):
    """One state of the program."""

    commit: str  # of the source tree, or "unknown"
    dirty: bool  # False only if the sources are known to be unchanged
    sources: str  # SHA-256 of all sources; "" if unknown


def this_build(package: Path = PACKAGE) -> Build:
    """The running build: looked up in its source tree, or as noted when it was installed."""
    if (package.parent / "CMakeLists.txt").exists():
        return Build(*source_state(package.parent), sources_hash(package.parent))
    import json  # slow to import, and a source tree has no such note

    try:
        return Build(**json.loads((package / BUILT).read_text()))
    except (OSError, ValueError, TypeError):
        return Build("unknown", True, "")


def starter(package: Path = PACKAGE) -> str:
    """The run_bench.sh of the clone that runs, as it is typed here; "" without a clone."""
    script = package.parent / "run_bench.sh"
    here = Path("run_bench.sh")
    if not script.exists():
        return ""
    return "./run_bench.sh" if here.exists() and here.samefile(script) else str(script)


def version_text() -> str:
    """What `fembench --version` prints: the version installed, and the commit."""
    from importlib import metadata

    try:
        version = metadata.version("fembench")
    except metadata.PackageNotFoundError:
        version = "(not installed)"
    build = this_build()
    modified = ", modified" if build.dirty else ""
    commit = f" (commit {build.commit[:12]}{modified})" if build.commit != "unknown" else ""
    return f"fembench {version}{commit}"


def source_state(root: Path) -> tuple[str, bool]:
    """(commit of the source tree, or 'unknown'; True unless known to be unchanged).

    A tree that is not itself a clone is 'unknown', even inside another clone.
    """
    if not (root / ".git").exists():
        return "unknown", True
    commit = _git(root, "rev-parse", "HEAD")
    if not commit:
        return _head(root / ".git") or "unknown", True
    changes = _git(root, "status", "--porcelain", "--", *SOURCES)
    return commit, changes != ""


def sources_hash(root: Path) -> str:
    """SHA-256 of the names and contents of all sources in a tree."""
    found = [path for name in SOURCES for path in (root / name, *(root / name).rglob("*"))]
    digest = hashlib.sha256()
    for path in sorted(p for p in found if p.suffix in SUFFIXES and p.is_file()):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(root).as_posix()} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def _git(root: Path, *arguments: str) -> str | None:
    """The output of git, or None if it fails."""
    import subprocess  # slow to import, and only one rank needs it

    line = ["git", "--no-optional-locks", "-C", str(root), *arguments]
    try:
        done = subprocess.run(line, capture_output=True, text=True, errors="replace", timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _head(folder: Path) -> str:
    """The commit that .git/HEAD names, for hosts without git."""
    head = _read(folder / "HEAD")
    if not head.startswith("ref: "):
        return head
    name = head[5:]
    packed = re.search(rf"^([0-9a-f]{{40}}) {re.escape(name)}$", _read(folder / "packed-refs"), re.M)
    return _read(folder / name) or (packed.group(1) if packed else "")


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


if __name__ == "__main__":
    import json

    note = Path(sys.argv[2])
    note.parent.mkdir(parents=True, exist_ok=True)
    note.write_text(json.dumps(this_build(Path(sys.argv[1]) / "fembench")._asdict()))
