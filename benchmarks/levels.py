"""Iterations by number of ranks: preconditioners on the same partitions of a mesh.

    python benchmarks/levels.py [--mesh m] [--ranks 2,4,8,16] [--precond NAME ...] [--tolerance 1e-8]
                                [--json]

Only iterations are counted, so there may be more ranks than cores.
"""

import argparse
import json
import tempfile
from pathlib import Path

from fembench.base.tables import table
from fembench.launch.case_job import launch
from fembench.records.case import Case


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mesh", default="m")
    parser.add_argument("--ranks", default="2,4,8,16", help="numbers of ranks, separated by commas")
    parser.add_argument(
        "--precond", nargs="+", default=["jacobi", "two-level"], metavar="NAME", help="preconditioners"
    )
    parser.add_argument(
        "--tolerance", type=float, default=1e-8, help="relative residual |r|/|f| at which to stop"
    )
    parser.add_argument("--json", action="store_true", help="print results as JSON")
    options = parser.parse_args()
    ranks = [int(count) for count in options.ranks.split(",")]
    found = {
        precond: {str(p): iterations(options.mesh, p, precond, options.tolerance) for p in ranks}
        for precond in options.precond
    }
    if options.json:
        print(json.dumps(found, indent=1))
        return
    rows = [[p, *(counts[str(p)] for counts in found.values())] for p in ranks]
    print(f"{options.mesh}, |r|/|f| = {options.tolerance:g}\n{table(['ranks', *found], rows)}")


def iterations(mesh: str, ranks: int, precond: str, tolerance: float) -> int:
    """Number of iterations of one solve."""
    case = Case.of(
        mesh=mesh,
        ranks=ranks,
        precond=precond,  # type: ignore[arg-type]
        tolerance=tolerance,
        tolerance_kind="relative",
        sets=1,
        warmups=0,
        trace_iterations=0,
    )
    with tempfile.TemporaryDirectory() as folder:
        outcome = launch(case, id="levels", command="benchmarks/levels.py", scratch=Path(folder))
    if outcome.result is None:
        raise SystemExit(f"levels.py: {outcome.message}")
    return outcome.result.solve.iterations


if __name__ == "__main__":
    main()
