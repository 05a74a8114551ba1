"""Make tables, plots and an HTML page from results.

Writes DIR/report/{index.html, report.md, tables/, plots/, exports/}: every table
and every measured time as CSV, plots as SVG, fields for ParaView (VTU) and
timelines for ui.perfetto.dev. Without matplotlib and jinja2, the tables are printed,
and no page is written. With --export, the runs are written for another program instead,
to DIR/exports.

Examples:
  fembench report results/scaling
  fembench report results/scaling --base 2 --out /tmp/report
  fembench report results/scaling --export parquet --export extra-p
"""

import argparse
import json
from pathlib import Path

from fembench.base.errors import InputError
from fembench.cli.options import listed
from fembench.cli.shared import ALL, say
from fembench.report.formats import EXPORTS, export

OPTIONS = f"""
folder DIR: results of a campaign: holds runs/*.json
--out DIR: folder for the report (default: DIR/report), or for exports (default:
    DIR/exports)
--base N: number of ranks that speedups refer to (default: the smallest)
--peers FILE: result of `fembench peers` (default: DIR/peers.json)
--export FORMAT*: write the runs for another program, and no report; may be repeated.
    {listed(EXPORTS)}
{ALL}--json: print every table as JSON; report is null if no page is written
"""
KINDS = {"folder": Path, "out": Path, "peers": Path, "export": tuple(EXPORTS)}


def run(options: argparse.Namespace) -> int:
    """0; verdicts are the subject of `fembench check`.

    Raises InputError, or ModuleNotFoundError, after the tables if the page cannot be written.
    """
    from fembench.base.progress import working
    from fembench.report import table, tables
    from fembench.workflows.sweep_state import unfinished

    campaign = tables.read_campaign(options.folder, options.peers)
    if options.export:
        return _export(campaign, options)
    said = [*unfinished(options.folder), *tables.conclusions_of(campaign)]
    index = missing = None
    with working("report: drawing the plots"):
        made = tables.tables_of(campaign, options.base)
        try:
            from fembench.report import page

            index = page.write(campaign, made, options.out or options.folder / "report", options.base, said)
        except (InputError, ModuleNotFoundError) as error:
            missing = error
    if options.json:
        tree = {"report": index and str(index), "conclusions": said}
        print(json.dumps(tree | {"tables": {t.name: table.to_json(t) for t in made}}))
    else:
        say(said)
        print(tables.selected(made, options.all), end="\n\n")
        print(f"report: {index or 'the page is not written'}")
    if isinstance(missing, InputError) or (missing and not options.json):
        raise missing
    return 0


def _export(campaign, options: argparse.Namespace) -> int:
    """Write the exports and print their paths. Raises ModuleNotFoundError as `run` does."""
    folder = options.out or options.folder / "exports"
    written = {}
    for name in dict.fromkeys(options.export):
        written[name] = str(export(name, campaign, folder, new=options.out is not None))
    print(json.dumps({"exports": written}) if options.json else "\n".join(written.values()))
    return 0
