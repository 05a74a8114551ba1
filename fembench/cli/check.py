"""Apply the validity rules to records again.

Prints the measured value of each rule next to its threshold, and the verdict. Records of earlier versions are
judged by the rules of this one. The exit status is 0 if every record is VALID or PROVISIONAL, 1 if one is
INVALID, and 2 if one cannot be read; the others are judged nevertheless.

Examples:
  fembench check results/scaling
  fembench check results/single/runs/m1-*.json --json
"""

import argparse


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("records", nargs="+", metavar="RECORD", help="record, or folder of records")
    parser.add_argument("--json", action="store_true", help="print the verdicts as JSON instead of tables")


def run(options: argparse.Namespace) -> int:
    from fembench.base.config import json_text
    from fembench.base.errors import InputError
    from fembench.records.validity import judge

    records, unread = _readable(options.records)
    verdicts = {record.id: judge(record) for record in records}
    if options.json:
        print(json_text(verdicts))
    else:
        for record in records:
            _show(record.id, verdicts[record.id], record.verdict.status)
    if unread:
        count = f"{len(unread)} of {len(unread) + len(records)} records cannot be read; the first: "
        raise InputError(f"{count if records or len(unread) > 1 else ''}{unread[0]}")
    return int(any(v.status == "INVALID" for v in verdicts.values()))


def _readable(paths):
    """(the records in these files and folders, an error for each that cannot be read). Raises InputError."""
    from pathlib import Path

    from fembench.base.errors import InputError
    from fembench.records.store import load, load_all, record_paths

    records, unread = [], []
    for path in paths:
        files = record_paths(path) if Path(path).is_dir() else [path]
        if not files:
            load_all(path)  # raises
        for file in files:
            try:
                records.append(load(file))
            except InputError as error:
                unread.append(error)
    return records, unread


def _show(id: str, verdict, written: str) -> None:
    from fembench.base.tables import table
    from fembench.records.record import STATES

    rules = sorted(verdict.rules, key=lambda rule: rule.id)
    rows = [(rule.id, STATES[rule.ok], rule.value, rule.threshold, rule.note) for rule in rules]
    print(f"{id}: {verdict.status}" + ("" if written == verdict.status else f" (the record says {written})"))
    print(table(("rule", "result", "value", "threshold", "note"), rows))
    print()
