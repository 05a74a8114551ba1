"""Show how the times of cases changed over dates, and since when.

Reads the records of many runs, as a nightly job leaves them: folders of results, or
folders of such folders. Of each case, the runs of one day and commit are a point.
Where the level of these points changes, it says by how much, from which date and
commit on, and what else changed: libraries, kernel, hosts. Single slow nights are no
change, and a new level needs three points; a series needs nine. Runs on different
processors are different series. INVALID runs do not count, nor do DISTURBED ones
beside quiet ones. Verdicts by today's rules are believed: 10 000 records take seconds.

It needs the package ruptures: pip install ruptures.

Examples:
  fembench history results/nightly
  fembench history results/2026-* -o history.html
"""

import argparse

from fembench.cli.shared import show

OPTIONS = """
folders DIR+: results, or folders of results
-o, --output FILE*: write all that was found: .md, .json, or .html (a page with a plot
    per case, without other files); may be repeated
--json: print every table as JSON
"""


def run(options: argparse.Namespace) -> int:
    """0: what a change means is for the reader to say; `fembench compare` fails jobs."""
    from fembench.report.outputs import WITHOUT_TESTS, check_form
    from fembench.workflows.comparison import history

    for path in options.output:
        check_form(path, WITHOUT_TESTS)
    show(options, history(*options.folders))
    return 0
