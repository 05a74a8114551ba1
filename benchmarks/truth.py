"""Does fembench detect differences on this machine? A/A comparisons, and a planted slowdown of 5 %.

    python benchmarks/truth.py [--quick] [--json FILE]

A case is compared with itself twenty times, and twenty times with itself dilated by 1.05: each computing
phase lasts 5 % longer than it takes at that moment. The targets: no difference is found in at least 19 of the
A/A comparisons, and the slowdown is found in at least 19 of the others. The exit status is 1 if a target is
not met.

A comparison is one job, in which both cases alternate set by set, a few hundredths of a second each, in
reversed order in every second turn. So a core that changes its speed for seconds disturbs both alike. The
turns are divided into 14 consecutive runs. The job ends when the 99 % interval of the runs' ratios is
within 2 %, whatever the ratio, or after 18 seconds. Two verdicts follow from the runs:

    tune     `advise`: the median ratio of the runs, its interval, the A/A noise of neighbouring sets; at
             99 %, because one of twenty verdicts at 95 % is expected to be wrong
    report   `ratio_unpaired`: the ratio of typical runs, as for a speedup; it ignores turns, so it detects
             less on a noisy machine, and only its A/A verdict has a target

With fourteen runs, one may disagree: equal cases are called different in 0.3 % of comparisons
(tests/stats/test_truth.py simulates this on a machine with two speeds). Run it on an idle machine: it takes
about 5 minutes on a quiet machine, up to 15 on a noisy one. --quick makes three comparisons of each kind: it
shows gross errors and proves little.
"""

import argparse
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import msgspec
from commands import Promise, end
from truth_turns import LEVEL, RUNS, Pairs, Took, in_runs

from fembench.base.tables import table
from fembench.launch.line import environment, job_line
from fembench.launch.run_job import run_job
from fembench.records.case import Case
from fembench.stats.compare import Comparison, noise_of_series
from fembench.stats.student import Ratio, ratio_unpaired
from fembench.weights.advice import advise

HERE = Path(__file__).resolve().parent
SLOWER = 1.05
WITHIN, LEAST, LONGEST = 0.02, 6 * RUNS, 18.0  # of the ratio; turns; seconds
TIMEOUT = 300.0
RANKS = "number of ranks (default: %(default)s); several ranks wait for each other, and so add noise"
HEADS = ["compared", "ratio", "99 %", "A/A noise", "turns", "set", "duration", "tune", "report"]


@dataclass(frozen=True)
class Found:
    """What one comparison found; ratios are first over second."""

    planted: bool
    ratio: float
    low: float
    high: float
    noise: float
    turns: int
    set_seconds: float
    seconds: float  # duration of the comparison, start of the job included
    tune: str  # slower, faster (the first), or no difference shown
    report: str

    @property
    def kept(self) -> bool:
        """Whether tune's verdict is the truth."""
        return self.tune == ("slower" if self.planted else "no difference shown")


def measure(case: Case, slower: float) -> Took:
    """The times of both, from a separate job."""
    line = job_line(case.placement.ranks)
    job = Pairs(case, slower, WITHIN, LEAST, LONGEST)
    program, variables = (str(HERE / "truth_turns.py"),), environment(line)
    end = run_job(program, job, line, variables, timeout=TIMEOUT)
    if end.result is None:
        raise SystemExit(f"{end.message}\n{end.output}")
    return msgspec.json.decode(end.result, type=Took)


def judge(took: Took, planted: bool, seconds: float) -> Found:
    """Both verdicts."""
    first, second = in_runs(took)
    noise = max(noise_of_series(took.first), noise_of_series(took.second))
    pairs: Comparison = advise(
        first, second, (1, 1), ("first", "second"), noise=noise, level=LEVEL
    ).comparison
    low, high = pairs.interval[:2]
    return Found(
        planted=planted,
        ratio=pairs.ratio,
        low=low,
        high=high,
        noise=noise,
        turns=len(took.first),
        set_seconds=median(took.second),
        seconds=seconds,
        tune=pairs.verdict,
        report=by_report(ratio_unpaired(first, second)),
    )


def by_report(ratio: Ratio) -> str:
    """What a reader takes from a ratio with its interval."""
    if 1.0 in ratio.interval:
        return "no difference shown"
    return "slower" if ratio.value > 1 else "faster"


def compare_all(case: Case, times: int) -> list[Found]:
    """A/A and planted comparisons alternately, so that both are made under the same conditions."""
    found = []
    for k in range(times):
        for planted in (False, True):
            begin = time.monotonic()
            took = measure(case, SLOWER if planted else 1.0)
            found.append(judge(took, planted, time.monotonic() - begin))
            print(f"{k + 1}/{times} {' | '.join(map(str, row(found[-1])))}", file=sys.stderr, flush=True)
    return found


def row(f: Found) -> list[str]:
    """A row of the table."""
    name = f"{SLOWER - 1:.0%} slower" if f.planted else "A/A"
    return [
        name + ("" if f.kept else " MISSED" if f.planted else " FALSE ALARM"),
        f"{f.ratio:.4f}",
        f"{f.low:.4f} – {f.high:.4f}",
        f"{f.noise:.2%}",
        str(f.turns),
        f"{1e3 * f.set_seconds:.1f} ms",
        f"{f.seconds:.1f} s",
        f.tune,
        f.report,
    ]


def promises(found: list[Found]) -> list[Promise]:
    """The report compares without turns and has no target for detection."""
    same, planted = ([f for f in found if f.planted == kind] for kind in (False, True))
    n = len(same)
    least = n - 1 if n >= 20 else n
    quiet = sum(f.kept for f in same)
    told = sum(f.report == "no difference shown" for f in same)
    seen, also = sum(f.kept for f in planted), sum(f.report == "slower" for f in planted)
    return [
        Promise("A/A, tune: nothing found", f"{quiet} of {n}", f">= {least}", quiet >= least),
        Promise("A/A, report: nothing found", f"{told} of {n}", f">= {least}", told >= least),
        Promise(f"{SLOWER - 1:.0%} slower, tune: found", f"{seen} of {n}", f">= {least}", seen >= least),
        Promise(f"{SLOWER - 1:.0%} slower, report: found", f"{also} of {n}", ""),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="three comparisons of each kind; proves little")
    parser.add_argument("--mesh", default="s", help="mesh of the case (default: %(default)s)")
    parser.add_argument("--ranks", type=int, default=1, metavar="N", help=RANKS)
    parser.add_argument(
        "--iterations",
        type=int,
        default=20,
        metavar="N",
        help="iterations of CG per set (default: %(default)s)",
    )
    parser.add_argument("--json", metavar="FILE", help="write all comparisons to this file")
    options = parser.parse_args()
    case = Case.of(
        mesh=options.mesh,
        ranks=options.ranks,
        iterations=options.iterations,
        sets=1,
        warmups=0,
        trace_iterations=0,
    )
    found = compare_all(case, 3 if options.quick else 20)
    print(table(HEADS, [row(f) for f in found], align="lrrrrrrll"))
    print(f"\ntotal: {sum(f.seconds for f in found):.0f} s")
    if options.quick:
        print("--quick: three comparisons of each kind show gross errors only; run without it for the proof")
    return end(promises(found), file=options.json, comparisons=[asdict(f) for f in found])


if __name__ == "__main__":
    sys.exit(main())
