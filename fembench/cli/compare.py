"""Compare two results: which is faster, and in which phase.

Cases of the same mesh, problem, method and ranks are paired, whatever commit, host or
library they were run with; it says what differs. The samples are the runs: with three
or more runs of a case on both sides (`repetitions` of a campaign, or `fembench run`
again), the ratio of times has a 95 % interval, and a verdict: slower, faster, or no
difference shown. All intervals hold together, so two equal results get a false verdict
in one comparison of twenty at most, however many cases they have. The first results
are the base. INVALID runs do not count.

Results are folders, single records, or `reference`, which comes with a clone.

With --fail-above 5%, the exit status is 1 if a case, or the geometric mean of all, is
slower by more than 5 % with its whole interval: a ratio of 1.08 with an interval from
1.03 to 1.13 passes, since chance may explain a part of it; one from 1.06 to 1.10 fails.
It is 1, too, if all runs of a case are INVALID in the other results only, and 2 if no
case has three runs on both sides that no other work DISTURBED.

Examples:
  fembench compare results/old results/new
  fembench compare results/monday results/tuesday --fail-above 5% -o junit.xml -o summary.md
  fembench compare reference results/mine -o comparison.html
"""

import argparse

from fembench.cli.options import percentage
from fembench.cli.shared import ALL, show

OPTIONS = f"""
results RESULTS+: a base and other results: folders, records, or reference
--fail-above PERCENT: exit with status 1 if something is slower by more than this, as 5%%
-o, --output FILE*: write all that was found: .md, .json, .xml (JUnit), or .html (a page
    without other files); may be repeated
{ALL}--json: print every table as JSON
"""
KINDS = {"fail_above": percentage}


def run(options: argparse.Namespace) -> int:
    """1 if something is slower than --fail-above allows, 2 if nothing can be judged."""
    from fembench.report.outputs import FORMS, check_form
    from fembench.workflows.comparison import compare

    for path in options.output:
        check_form(path, tuple(FORMS))
    found = compare(*options.results, fail_above=options.fail_above)
    show(options, found, folded=("compared_phases",))
    if any(test.failure for test in found.tests):
        return 1
    return 0 if found.judged else 2
