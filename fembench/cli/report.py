"""Make tables, plots and an HTML page from results.

Writes DIR/report/{index.html, report.md, tables/, plots/, exports/}: every table and every measured time as
CSV, plots as SVG, fields for ParaView (VTU) and timelines for ui.perfetto.dev.

Examples:
  fembench report results/scaling
  fembench report results/scaling --base 2 --out /tmp/report
  fembench report results/new-cluster --against results/old-cluster
"""

import argparse
import json
from pathlib import Path


def arguments(parser: argparse.ArgumentParser) -> None:
    from fembench.cli.shared import whole

    parser.add_argument("folder", metavar="DIR", type=Path, help="results of a campaign: holds runs/*.json")
    parser.add_argument("--out", metavar="DIR", type=Path, help="folder for the report (default: DIR/report)")
    parser.add_argument(
        "--base",
        metavar="N",
        type=whole(0),
        default=0,
        help="number of ranks that speedups refer to (default: the smallest)",
    )
    parser.add_argument(
        "--peers", metavar="FILE", type=Path, help="result of `fembench peers` (default: DIR/peers.json)"
    )
    parser.add_argument(
        "--against",
        metavar="DIR",
        type=Path,
        help="results of another campaign, whose headline is shown next to this one's",
    )
    parser.add_argument("--json", action="store_true", help="print every table as JSON")


def run(options: argparse.Namespace) -> int:
    """Always 0; verdicts are the subject of `fembench check`."""
    from fembench.base.progress import working
    from fembench.report import page, table, tables

    campaign = page.read_campaign(options.folder, options.peers)
    other = tables.other_campaign(options.against) if options.against else None
    with working("report: drawing the plots"):
        index = page.build(options.folder, options.out, base=options.base, peers=options.peers, against=other)
    shown = campaign.records, campaign.failures, campaign.peers, options.base, other, campaign.nodes
    if options.json:
        made = tables.every_table(*shown)
        print(json.dumps({"report": str(index), "tables": {t.name: table.to_json(t) for t in made}}))
    else:
        print(tables.terminal(*shown), end="\n\n")
        print(f"report: {index}")
    return 0
