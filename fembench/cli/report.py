"""Tables, plots and one HTML page from a folder of results.

Writes DIR/report/{index.html, report.md, tables/, plots/, exports/}: CSV of every table and of every
time measured, SVG plots, VTU for ParaView, traces for ui.perfetto.dev.
"""

import argparse
import json
from pathlib import Path


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", type=Path, help="results of a campaign: holds runs/*.json")
    parser.add_argument("--out", metavar="DIR", type=Path, help="write the report here instead of DIR/report")
    parser.add_argument("--json", action="store_true", help="print every table as JSON, for other programs")


def run(options: argparse.Namespace) -> int:
    """0; what the verdicts are is `fembench check`'s to say."""
    from fembench.report import page, table, tables

    campaign = page.read_campaign(options.folder)
    index = page.build(options.folder, options.out)
    if options.json:
        made = tables.every_table(campaign.records, campaign.failures, campaign.peers)
        print(json.dumps({"report": str(index), "tables": {t.name: table.to_json(t) for t in made}}))
    else:
        print(tables.terminal(campaign.records, campaign.failures, campaign.peers), end="\n\n")
        print(f"report: {index}")
    return 0
