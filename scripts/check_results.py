"""Whether results may join results/ of the repository: python scripts/check_results.py results/NAME

Prints a line for everything that is missing, and exits with status 1 if there is any (docs/howto/compare.md).
"""

import re
import sys
from pathlib import Path

from fembench.base.config import read_toml
from fembench.base.errors import InputError
from fembench.base.terminal import reader_may_leave
from fembench.base.units import few, plural
from fembench.bench.campaign_file import Campaign
from fembench.records.quiet import disturbance
from fembench.records.store import load, load_all
from fembench.report.comparison import CaseRuns, SideRuns, cases
from fembench.stats.student import FEWEST

LARGEST = 5_000_000  # bytes
ALLOWED = re.compile(r"campaign\.toml|(runs|gpu)/[^/]+\.json|README\.md")
VALID_RUNS = 2 / 3  # of all; the others may be PROVISIONAL: they scatter more, which intervals know
HOME = re.compile(rb"/(?:home|Users)/\w+|/root\b")


def faults(folder: Path) -> list[str]:
    """What speaks against these results, a line each. Raises InputError if there are none."""
    records, found = load_all(folder), []
    for single in sorted(folder.glob("gpu/*.json")):
        load(single)
    files = [p for p in sorted(folder.rglob("*")) if p.is_file()]
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", folder.name):
        found.append(f"name {folder.name}: expected small letters, digits and hyphens")
    try:
        read_toml(folder / "campaign.toml", Campaign)
    except InputError as error:
        found.append(f"{error}: others cannot repeat it")
    if (size := sum(p.stat().st_size for p in files)) > LARGEST:
        found.append(f"{size / 1e6:.1f} MB; expected {LARGEST / 1e6:.0f} at most")
    found += [f"{p.relative_to(folder)}: a link" for p in sorted(folder.rglob("*")) if p.is_symlink()]
    other = [str(p.relative_to(folder)) for p in files if not ALLOWED.fullmatch(str(p.relative_to(folder)))]
    found += [f"other files: {few(other, 3)}"] if other else []
    found += [f"{p.name}: a path of a home folder" for p in files if HOME.search(p.read_bytes())]
    found += [f"{r.id}: INVALID: {r.verdict.reason}" for r in records if r.verdict.status == "INVALID"]
    found += [f"{r.id}: {said}" for r in records if (said := disturbance([r.environment], "times", ""))]
    valid = sum(r.verdict.status == "VALID" for r in records)
    if valid < VALID_RUNS * len(records):
        found.append(f"{valid} of {plural(len(records), 'run')} VALID; expected two of three")
    found += [f"{r.id}: SYNTHETIC" for r in records if r.environment.synthetic]
    return found + [
        lacking(case) for case in cases(SideRuns(folder.name, records)) if len(case.records) < FEWEST
    ]


def lacking(case: CaseRuns) -> str:
    return f"{case.name}: {plural(len(case.records), 'run')}; expected {FEWEST} or more"


def main() -> int:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = Path(sys.argv[1]).resolve()
    try:
        found = faults(folder)
    except InputError as error:
        sys.exit(f"{error}")
    with reader_may_leave():
        print("\n".join(found or [f"{folder.name}: ready to join the repository"]))
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
