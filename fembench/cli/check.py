"""Apply the validity rules to records again.

Prints the verdict of each record, with the rules that it does not meet and what to do
about them. With --all, and for a single record, it prints the measured value of every
rule next to its threshold. Records of earlier versions are judged by the rules of this
one. The exit status is 0 if every record is VALID or PROVISIONAL, 1 if one is INVALID,
and 2 if one cannot be read; the others are judged nevertheless.

Examples:
  fembench check results/scaling
  fembench check results/scaling --all
  fembench check results/single/runs/m1-*.json --json
"""

import argparse
from collections import Counter
from pathlib import Path

from fembench.base.config import json_text
from fembench.base.errors import InputError
from fembench.base.terminal import reader_may_leave
from fembench.base.units import plural

OPTIONS = """
records RECORD+: record, or folder of records
--all: print every rule of every record
--json: print the verdicts as JSON instead of tables
"""


def run(options: argparse.Namespace) -> int:
    from fembench.records.validity import judge

    records, unread = _readable(options.records)
    verdicts = {record.id: judge(record) for record in records}
    with reader_may_leave():
        if options.json:
            print(json_text(verdicts))
        elif options.all or len(records) == 1:
            for record in records:
                _show_all(record, verdicts[record.id])
        elif records:
            for record in sorted(records, key=lambda record: verdicts[record.id].status):
                verdict = verdicts[record.id]
                print(_head(record, verdict), *verdict.reasons, sep="\n  ")
            print(_counted(verdicts.values()))
    if unread:
        count = f"{len(unread)} of {len(unread) + len(records)} records cannot be read; the first: "
        raise InputError(f"{count if records or len(unread) > 1 else ''}{unread[0]}")
    return int(any(v.status == "INVALID" for v in verdicts.values()))


def _readable(paths):
    """(the records in files and folders, errors of unreadable ones). Raises InputError."""
    from fembench.records.store import load_all, record_paths, written

    records, unread = [], []
    for path in paths:
        files = record_paths(path) if Path(path).is_dir() else [path]
        if not files:
            load_all(path)  # raises
        for file in files:
            try:
                records.append(written(file))
            except InputError as error:
                unread.append(error)
    return records, unread


def _show_all(record, verdict) -> None:
    """Every rule."""
    from fembench.base.tables import table

    rules = sorted(verdict.rules, key=lambda rule: rule.id)
    rows = [(rule.name, rule.state, rule.value, rule.threshold, rule.note) for rule in rules]
    print(_head(record, verdict))
    print(table(("rule", "result", "value", "threshold", "note"), rows))
    print()


def _head(record, verdict) -> str:
    said = record.verdict
    by = "" if said.version == verdict.version else ", by earlier rules"
    differs = "" if said.status == verdict.status else f" (the record says {said.status}{by})"
    return f"{record.id}: {verdict.status}{differs}"


def _counted(verdicts) -> str:
    """'12 records: 3 VALID, 9 PROVISIONAL'."""
    counts = Counter(verdict.status for verdict in verdicts)
    words = [f"{counts[status]} {status}" for status in ("VALID", "PROVISIONAL", "INVALID") if counts[status]]
    return f"{plural(len(verdicts), 'record')}: {', '.join(words)} (every rule: --all)"
