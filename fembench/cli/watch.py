"""Show how a running campaign stands, from another shell.

Says which run is in progress, which set of about how many, the time left, which runs are
done with which verdicts, and whether other work disturbed them. It stays until the
campaign ends; Ctrl-C ends only the watching. DIR may be on a file server: whoever reads
the folder can watch, on any host. It reads a file of a few hundred bytes that the
campaign replaces every two seconds, and each record once. It takes no lock and writes
nothing, so the campaign cannot notice it; on a host that computes, its own work counts
as that of other programs, so watch from a login node. The exit status is 0 if the
campaign runs or is done, 1 if it was stopped or killed, and 2 if none has run in DIR.

Examples:
  fembench watch results/scaling
  fembench watch results/scaling --once
  fembench watch results/scaling --json
"""

import argparse
import json
import time
from pathlib import Path

OPTIONS = """
folder DIR: results folder of `fembench sweep`
--once: print how it stands now, with a table of all runs done, and end
--json: print the same as JSON, and end
"""
KINDS = {"folder": Path}


def run(options: argparse.Namespace) -> int:
    import msgspec

    from fembench.report.results import results
    from fembench.report.runs import overview
    from fembench.report.table import text, to_json
    from fembench.workflows.sweep_state import Watch, sentences

    watch = Watch(options.folder)
    sight = watch.steady_look()
    done = overview(results(watch.new_records()))
    if options.json:
        how = {"running": not sight.over and not sight.silent, "silence": sight.silence}
        print(json.dumps(msgspec.to_builtins(sight.state) | how | {"cases": to_json(done)}))
        return int(not sight.well)
    print(*sentences(sight), *([f"\n{text(done)}"] if done.rows else []), sep="\n", flush=True)
    if not options.once and not sight.over:
        sight = _follow(watch)
    return int(not sight.well)


def _follow(watch):
    """A line for every run that ends, below them what is going on; how it was seen last."""
    from fembench.base.progress import progress, working
    from fembench.base.terminal import reader_left
    from fembench.report.runs import summary_line
    from fembench.workflows.sweep_state import EVERY, sentences

    with working("watch", patience=0) as now:
        while True:
            sight = watch.look()
            for record in watch.new_records():
                progress(summary_line(record))
            if sight.over or reader_left():
                break
            text = next(sentences(sight)) if sight.silent else sight.state.doing
            if now.text != text:
                now.text = text
                now.began = time.monotonic() - sight.state.seconds
            now.tell(sight.state.stage)
            time.sleep(EVERY)
    print(*sentences(sight), sep="\n")
    return sight
