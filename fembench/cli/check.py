"""Apply the validity rules to records again.

Prints the measured value of each rule next to its threshold, and the verdict. The exit status is 0 if every
record is VALID or PROVISIONAL, and 1 if one is INVALID.

Examples:
  fembench check results/scaling
  fembench check results/single/runs/m1-*.json --json
"""

import argparse


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("records", nargs="+", metavar="RECORD", help="record, or folder of records")
    parser.add_argument("--json", action="store_true", help="print the verdicts as JSON instead of tables")


def run(options: argparse.Namespace) -> int:
    from pathlib import Path

    from fembench.base.config import json_text
    from fembench.records.store import load, load_all
    from fembench.records.validity import judge

    records = [
        r for path in options.records for r in (load_all(path) if Path(path).is_dir() else [load(path)])
    ]
    verdicts = {record.id: judge(record) for record in records}
    if options.json:
        print(json_text(verdicts))
    else:
        for record in records:
            _show(record.id, verdicts[record.id], record.verdict.status)
    return int(any(v.status == "INVALID" for v in verdicts.values()))


def _show(id: str, verdict, written: str) -> None:
    from fembench.base.tables import table
    from fembench.records.record import STATES

    rules = sorted(verdict.rules, key=lambda rule: rule.id)
    rows = [(rule.id, STATES[rule.ok], rule.value, rule.threshold, rule.note) for rule in rules]
    print(f"{id}: {verdict.status}" + ("" if written == verdict.status else f" (the record says {written})"))
    print(table(("rule", "result", "value", "threshold", "note"), rows))
    print()
