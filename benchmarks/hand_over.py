"""Other programs on unequal parts: how much of the possible gain reaches DOLFINx, PETSc and OpenFOAM?

    python benchmarks/hand_over.py [--root FOLDER] [--only dolfinx,petsc] [--pairs N] [--json FILE]

A lab slows the second core down to half its speed (root). For each program of examples/, fembench measures
both cores and cuts the mesh; then the program runs with one rank on either core, on equal parts and on those
of the map, in turns. Times are those of assembly and solution, without reading. --root: a folder with the
system in which the programs are installed, if that is not this one.

Run it on an idle machine. Each program takes seven to eleven minutes, because single times scatter by 15 % on
virtual cores. The exit status is 1 if one gets less than 70 % of what the measured speeds allow.
"""

import argparse
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from commands import FEMBENCH, Promise, built, end, fembench, inside

from fembench.records.weights import load_weights, shares_of
from fembench.stats.compare import compare_paired

RUN, RUNS = "run l --ranks 2 --iterations 30 --sets 10", 3  # out of cache, as the programs' meshes are
EXAMPLES = Path(__file__).parents[1] / "examples"
HOSTS = """
[[hosts]]
name = "fast"
cpus = [0]
[[hosts]]
name = "slow"
cpus = [1]
speed = 0.5
"""
BOX, EQUAL = (
    "fembench mesh box {n}x{n}x{n} -o box.msh",
    "fembench partition {mesh} --shares 1:1 --to {to} -o {o}",
)
PLAIN = "OMP_NUM_THREADS=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PATH=/usr/bin:/bin"
PINNED = """mpirun -n 2 --bind-to none bash -c 'exec taskset -c $OMPI_COMM_WORLD_RANK "$@"' -"""
POISSON = f"{PINNED} python3 poisson.py box.msh"
FOAM = "set -o pipefail; export WM_PROJECT_DIR=/usr/share/openfoam"
# when the first step begins and when the last has ended: as in the other programs, reading is not timed
STAMPED = """case $line in "Time = 1" | End) echo "stamp $EPOCHREALTIME";; esac"""
TIMED = f"{PINNED} laplacianFoam -parallel | while read -r line; do {STAMPED}; done"
# iterations that last longer than the millisecond by which the lab divides a core
LARGER = "sed -i 's/n 40;/n 80;/' system/blockMeshDict; sed -i 's/endTime 20/endTime 3/' system/controlDict"
PROGRAMS = {  # mesh, what makes it, equal parts, then those of the map
    "dolfinx": (["box.msh"], [BOX.format(n=28)], POISSON, f"{POISSON} parts"),
    "petsc": (["box.msh"], [BOX.format(n=32)], POISSON, f"{POISSON} parts"),
    "openfoam": (
        ["VTK/openfoam_0/internal.vtu"],
        [LARGER, f"{FOAM}; blockMesh; foamToVTK -ascii -fields '()'"],
        f"{FOAM}; cp -r equal/* .; decomposePar -force; {TIMED}",
        f"{FOAM}; cp -r parts/* .; decomposePar -force; {TIMED}",
    ),
}


def typed(line: str, folder: Path, root: Path) -> str:
    """What a command prints: one of fembench here, others in the system with the programs."""
    if line.startswith("fembench "):
        words = [*FEMBENCH, *line.split()[1:]]
        return subprocess.run(words, cwd=folder, check=True, text=True, capture_output=True).stdout
    there = f"cd {'/' / folder.relative_to(root)}; {line}"
    words = ["chroot", str(root), "env", "-i", *PLAIN.split(), f"HOME={'/' / folder.relative_to(root)}"]
    done = subprocess.run([*words, "bash", "-ec", there], text=True, capture_output=True)
    if done.returncode:
        raise SystemExit(f"{line}\n{done.stdout[-1000:]}{done.stderr[-1000:]}")
    return done.stdout


def solved(text: str) -> float:
    """The seconds of assembly and solution: as the program says them, or from stamps."""
    if stamps := re.findall(r"stamp (\S+)", text):
        return float(stamps[-1]) - float(stamps[0])
    return float(re.findall(r"seconds (\S+)", text)[-1])


def measured(lab: str, folder: Path) -> Path:
    """Weights from three runs: a virtual core does not keep its speed for longer than seconds."""
    results = [str(folder / f"run-{k}") for k in range(RUNS)]
    for each in results:
        inside(lab, *RUN.split(), "--results", each)
    fembench("weights", *results, "-o", str(folder / "weights.json"))
    return folder / "weights.json"


def gain(name: str, weights: Path, pairs: int, root: Path) -> Iterator[Promise]:
    """The times of both partitions in turns, and the captured part of the possible gain."""
    [mesh], make, equal, weighted = PROGRAMS[name]
    with tempfile.TemporaryDirectory(dir=root / "tmp") as scratch:
        folder = shutil.copytree(EXAMPLES / name, Path(scratch, name))
        for line in make:
            typed(line, folder, root)
        typed(EQUAL.format(mesh=mesh, to=name, o="equal"), folder, root)
        typed(f"fembench partition {mesh} --weights {weights} --to {name} -o parts", folder, root)
        times: dict[str, list[float]] = {equal: [], weighted: []}
        for k in range(pairs):
            for line in (equal, weighted)[:: 1 if k % 2 else -1]:
                times[line].append(solved(typed(line, folder, root)))
    found = compare_paired(times[equal], times[weighted])
    shares = shares_of(load_weights(weights))
    ideal = 0.5 / min(shares)
    captured = (1 - 1 / found.ratio) / (1 - 1 / ideal)
    low, high = (found.interval.low, found.interval.high) if found.interval else (0.0, float("inf"))
    rounded = {
        what: [round(t, 2) for t in times[line]] for what, line in (("equal", equal), ("map", weighted))
    }
    yield Promise(f"{name}: seconds", str(rounded), "")
    yield Promise(f"{name}: equal over map", f"{found.ratio:.3f} (95 %: {low:.3f} to {high:.3f})", "")
    text = f"{captured:.0%} of a ratio of {ideal:.3f} at shares {shares[0]:.3f}, {shares[1]:.3f}"
    yield Promise(f"{name}: captured gain", text, ">= 70 %", captured >= 0.7)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path("/"))
    parser.add_argument("--only", default=",".join(PROGRAMS))
    parser.add_argument("--pairs", type=int, default=14, help="runs on equal parts and on those of the map")
    parser.add_argument("--json")
    asked = parser.parse_args()
    promises: list[Promise] = []
    with tempfile.TemporaryDirectory() as folder, built("handover", HOSTS) as lab:
        for name in asked.only.split(","):
            weights = measured(lab, Path(folder, name))
            promises += gain(name, weights, asked.pairs, asked.root)
            print(*(f"{p.what}: {p.found}" for p in promises[-3:]), sep="\n", flush=True)
    return end(promises, file=asked.json)


if __name__ == "__main__":
    raise SystemExit(main())
