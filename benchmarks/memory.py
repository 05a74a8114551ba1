"""Peak memory of each rank on a box generated in parallel: total, and per mesh node.

    python benchmarks/memory.py [--mesh xl] [--ranks 1,2,4] [--json]

The peak is that of the whole run (VmHWM): libraries, mesh, assembly, solve, verification.
"""

import argparse
import json
import tempfile
from pathlib import Path

from fembench.base import units
from fembench.base.tables import table
from fembench.launch.case_job import launch
from fembench.records.case import Case
from fembench.records.phases import NAMES
from fembench.records.times import Times


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mesh", default="xl")
    parser.add_argument("--ranks", default="1,2,4", help="numbers of ranks, separated by commas")
    parser.add_argument("--json", action="store_true", help="print results as JSON")
    options = parser.parse_args()
    found = [measure(options.mesh, int(ranks)) for ranks in options.ranks.split(",")]
    if options.json:
        print(json.dumps(found, indent=1))
        return
    heads = ["ranks", "all ranks", "largest rank", "largest rank over one rank", "bytes per mesh node"]
    one = next((f["largest"] for f in found if f["ranks"] == 1), None)
    rows = [
        [
            f["ranks"],
            units.size(f["together"]),
            units.size(f["largest"]),
            one and f["largest"] / one,
            f["a_node"],
        ]
        for f in found
    ]
    print(f"{options.mesh}: {found[0]['equations']} equations\n{table(heads, rows, digits=4)}")


def measure(mesh: str, ranks: int) -> dict:
    """One short run."""
    case = Case.of(
        mesh=mesh, ranks=ranks, partitioner="blocks", iterations=5, sets=1, warmups=0, trace_iterations=0
    )
    with tempfile.TemporaryDirectory() as folder:
        outcome = launch(case, id="memory", command="benchmarks/memory.py", scratch=Path(folder))
    record = outcome.record
    if record is None:
        raise SystemExit(f"memory.py: {outcome.message}")
    nodes = [dofs / 3 for dofs in record.partition.dofs]
    return {
        "mesh": mesh,
        "ranks": ranks,
        "equations": record.mesh.n_equations,
        "peaks": record.peak_memory,
        "together": sum(record.peak_memory),
        "largest": max(record.peak_memory),
        "a_node": max(peak / n for peak, n in zip(record.peak_memory, nodes)),
        "setup": {name: t for name, t in zip(NAMES, Times(record).once.max(axis=0).tolist()) if t > 0},
    }


if __name__ == "__main__":
    main()
