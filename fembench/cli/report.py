"""Make tables, plots and an HTML page from results.

Writes DIR/report/{index.html, report.md, tables/, plots/, exports/}: every table
and every measured time as CSV, plots as SVG, fields for ParaView (VTU) and
timelines for ui.perfetto.dev.

Examples:
  fembench report results/scaling
  fembench report results/scaling --base 2 --out /tmp/report
  fembench report results/new-cluster --against results/old-cluster
"""

import argparse
import json
from pathlib import Path

from fembench.cli.options import declare

OPTIONS = """
folder DIR: results of a campaign: holds runs/*.json
--out DIR: folder for the report (default: DIR/report)
--base N: number of ranks that speedups refer to (default: the smallest)
--peers FILE: result of `fembench peers` (default: DIR/peers.json)
--against DIR: results of another campaign, whose headline is shown next to this one's
--json: print every table as JSON
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    declare(parser, OPTIONS, folder=Path, out=Path, peers=Path, against=Path)


def run(options: argparse.Namespace) -> int:
    """Always 0; verdicts are the subject of `fembench check`."""
    from fembench.base.progress import working
    from fembench.report import page, table, tables

    campaign = page.read_campaign(options.folder, options.peers)
    other = tables.other_campaign(options.against) if options.against else None
    with working("report: drawing the plots"):
        made = page.tables_of(campaign, options.base, other)
        index = page.write(campaign, made, options.out or options.folder / "report", options.base)
    if options.json:
        print(json.dumps({"report": str(index), "tables": {t.name: table.to_json(t) for t in made}}))
    else:
        print(tables.selected(made), end="\n\n")
        print(f"report: {index}")
    return 0
