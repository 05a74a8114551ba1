"""Times of a case by number of ranks, predicted from a profile, and scored against a run.

Grids of predictions are made ahead of runs, and scored afterwards.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from fembench.base.arguments import as_in_file, typed
from fembench.base.errors import InputError
from fembench.base.progress import progress, telling, working
from fembench.base.units import plural
from fembench.bench.campaign import read_campaign
from fembench.bench.campaign_file import reasons, settled
from fembench.characterize.load_now import loads_of
from fembench.launch.hosts import host_slots
from fembench.launch.scratch import occupied
from fembench.mesh.presets import resolve
from fembench.methods import lookup
from fembench.model.answers import Answers, bounded_answers, fewest_ranks, simulated_answers
from fembench.model.configuration import not_invalid
from fembench.model.drifted import StateChange, changes, known_from, readings_of, stale, state_text
from fembench.model.forecast import outcome_text
from fembench.model.grid import (
    GridFile,
    all_predictions,
    check_cases,
    judge_held_out,
    predict_held_out,
    read_grid,
    study_of,
)
from fembench.model.heterogeneity import Slowdown, brought_up_to_date, calibrated_at, hosts_to_ask
from fembench.model.predictor import BALANCED, Predictor, observed, open_study, taught
from fembench.model.rates import Rates, slowed
from fembench.model.score import PredictionScore, ScoredConfiguration, cell_table, score_table, too_noisy
from fembench.model.slots import parse_factor
from fembench.partition.shares import shares_text
from fembench.records.case import Case
from fembench.records.hlogp import parse_link
from fembench.records.prediction import ANALYTIC, METHODS, SIMULATION, add_outcome, load_prediction
from fembench.records.profile import Profile
from fembench.records.quiet import disturbance
from fembench.records.record import Record
from fembench.records.store import load, load_all, load_each
from fembench.records.weights import Weights, weights_in
from fembench.workflows.cases import (
    case_asked,
    check_least,
    check_words,
    storage_of,
    warn_of_doubts,
    weighted,
)
from fembench.workflows.tune import Tuned, weights_of


@typed
def predict(
    machine: Profile | Path | str,
    mesh: Case | Path | str,
    *,
    ranks: int | Sequence[int] = (),
    shares: str | Sequence[float] = "",
    weights: Weights | Tuned | Path | str | None = None,
    method: str = SIMULATION,
    learn: Path | str | Sequence[Path | str | Record] = (),
    iterations: int = 0,
    link: str = "",
    network: str = "x1",
    contention: bool | None = None,
    machines: str | Sequence[str] = (),
    now: bool = False,
    hostfile: Path | str = "",
    tell: Callable[[str], None] | None = None,
    **fields: Any,
) -> Answers:
    """Predict the times of a case on each number of ranks, from a measured machine.

    machine: a profile with a network, as `machine` returns it, or its file
    mesh: preset, box or file; or a case, such as that of a record
    ranks: a number or several; if empty, those of a given case, or as many as the profile has
    shares: as for `run`, or "balanced", by the speeds of the profile
    weights: instead of shares, what `shares` or `tune` found, or its file
    method: "simulation" of the execution graph, or "analytic", bounds in closed form
    learn: runs on this machine, which correct the prices: Runs, a folder, or a list of
    files, folders and records
    iterations: of a whole solution; 0: those of a given case, or of a learned run of the mesh
    link: "SECONDS,BYTES/S[,SECONDS]", in place of the network measured between hosts
    network: "x10", ten times as fast
    contention: whether messages of a host go one after another; None: as far as measured
    machines: edits of the hosts, one or several: fastest, slowest, add:NAME*N, share:N
    now: for the present load of the hosts, or of those in `hostfile`
    fields: others of the case, as for `run`

    Returns a prediction per number of ranks: `predicted.iteration` in seconds, from
    `predicted.low` to `predicted.high`; `latest` has the upper ends of their solutions.
    Tells the limits of the profile, and what disturbed it or the runs. Raises InputError.
    """
    check_words(METHODS, method=method)
    check_least(0, iterations=iterations)
    weights = weights_of(weights)
    known = mesh.flat() if isinstance(mesh, Case) else {}
    with telling(tell):
        study = open_study(
            machine,
            link=parse_link(link, overhead=True) if link else None,
            storage=lookup.storage_of(storage_of(known | fields)).priced_as,
            contention=contention,
        )
        learned = _learned(learn)
        study = taught(study, learned) if learn else study
        rates = _as_now(study, str(hostfile)) if now else study.rates
        study = dataclasses.replace(study, rates=rates, edits=_listed(machines), factor=parse_factor(network))
        usual = known.get("ranks", len(study.profile.environment.rank_host))
        counts = list(dict.fromkeys(_listed(ranks))) or [usual]
        asked = _cases(mesh, counts, shares_text(shares) or known.get("shares", ""), fields)
        cases = [settled(weighted(case, weights)) for case in asked]
        if weights:
            warn_of_doubts(weights_in(weights), study.profile.environment.synthetic)
        for line in reasons(cases):
            progress(f"predict: {line}")
        with working(f"predict: {cases[0].question.mesh}"):
            answers = _answers(study, cases, method, iterations or cases[0].stop.iterations, learned)
        if warning := answers[0].predicted.provisional:
            answers = _warned(answers, warning)
            if tell is not progress:  # the command prints it with the tables
                progress(f"note: {warning}")
        _note(study, answers)
    return answers


def _listed(given: Any) -> tuple[Any, ...]:
    """What is given: one, or several."""
    given = as_in_file(given)
    return tuple(given) if isinstance(given, list) else (given,)


def _answers(
    study: Predictor, cases: Sequence[Case], method: str, iterations: int, learned: Sequence[Record]
) -> Answers:
    """The answers of this method for cases of one mesh."""
    grid = resolve(cases[0].question.mesh)
    if method == ANALYTIC:
        return bounded_answers(study, cases, grid, iterations, learned)
    return simulated_answers(study, cases, grid, iterations or study.iterations.get(grid.hash, 0))


def in_time(answers: Answers, deadline: float) -> str:
    """How many ranks meet the deadline. Raises InputError if none of these numbers does."""
    ranks = fewest_ranks(answers, deadline)
    verb = "suffices" if ranks == 1 else "suffice"
    return f"deadline {deadline:g} s: {plural(ranks, 'rank')} {verb}, at the upper end of the interval"


def scored(prediction: Path | str, against: Path | str) -> tuple[str, bool]:
    """(errors and state of the machine as text; whether that changed) of a predicted run."""
    record = load(against)
    before = load_prediction(prediction)
    seen = observed(before, record)
    lines = [outcome_text(add_outcome(prediction, seen), record.id)]
    if before.predicted.provisional:
        lines.append(f"prediction: {before.predicted.provisional}")
    if loud := disturbance([record.environment], "times"):
        lines.append(f"run: {loud}")
    said = before.predicted
    lines.append(state_text(changes(said.state, readings_of([record])), known_from(said.learned)))
    return "\n".join(lines), bool(seen.stale)


def _warned(answers: Answers, provisional: str) -> Answers:
    """The answers, with why they may be wrong before the tables and in each run."""
    tree = [{**run, "provisional": provisional} for run in answers.tree]
    return dataclasses.replace(answers, text=f"{provisional}\n\n{answers.text}", tree=tree)


def _note(study: Predictor, answers: Answers) -> None:
    """Report the limits of the profile."""
    network = study.profile.network
    if network is not None and not any(one.cold for one in network.classes):
        progress(
            "note: the profile does not say how long messages take after computing; priced as in a ping-pong"
        )
    for line in answers.beyond:
        progress(f"note: {line}")


def _learned(learn: Path | str | Sequence[Path | str | Record]) -> list[Record]:
    """The runs to learn from; tells those left out, which are INVALID."""
    listed = [learn] if isinstance(learn, Path | str) else learn
    given = [one for one in listed if isinstance(one, Record)]
    learned, note = not_invalid([*given, *load_each([one for one in listed if not isinstance(one, Record)])])
    if note:
        progress(f"note: runs to learn from: {note}")
    return learned


def _as_now(study: Predictor, hostfile: str) -> Rates:
    """The study's rates, each rank slowed by the load of its host since the profile."""
    profile = study.profile
    names = [host.name for host in host_slots(hostfile)] if hostfile else []
    slower: dict[int, Slowdown] = {}
    for samples in loads_of(hosts_to_ask(profile, names), Path("."), progress):
        found = brought_up_to_date(profile, samples)
        most = max(found.values())
        progress(
            f"{samples[0].host}: computing takes {most.factor:.2f} times as long now as in the profile, "
            f"by the clock ({most.low:.2f} to {most.high:.2f} in {plural(len(samples), 'sample')})"
        )
        slower |= found
    if missing := set(slower) - set(calibrated_at(profile)):
        progress(
            f"the profile has no kernels of {plural(len(missing), 'rank')}; taken to be those of an idle host"
        )
    progress(
        "message costs are those of the profile: underestimated under load, which delays messages more "
        "than computing (Mendes 2004, Table 4.41: L 6 to 7 times longer, of small messages up to 150 times)"
    )
    rates = slowed(study.rates, {rank: one.factor for rank, one in slower.items()})
    return dataclasses.replace(rates, uncertain=max(one.uncertain for one in slower.values()))


def _cases(
    mesh: Case | Path | str, counts: Sequence[int], shares: str, fields: Mapping[str, Any]
) -> list[Case]:
    """The case that is asked on each number of ranks. Raises InputError."""
    if len(counts) > 1 and shares not in ("", "equal", BALANCED):
        raise InputError(
            f"shares = {shares} with ranks = {','.join(map(str, counts))}: expected equal or balanced "
            "shares, or one number of ranks"
        )
    said = {"shares": "" if shares == "equal" else shares}
    each = [{**fields, **said, "ranks": count} for count in counts]
    return [case_asked(mesh, one, "predict") for one in each]


class Validated(NamedTuple):
    """Predictions compared with runs."""

    cells: Sequence[ScoredConfiguration]
    scores: dict[str, PredictionScore]
    synthetic: Sequence[str]  # how hosts were emulated
    state: list[StateChange]  # of the hosts since `before`
    before: str = "training"  # or "profile"

    @property
    def stale(self) -> str:
        """Why the predictions no longer hold; "" if they do."""
        return stale(self.state, self.before)

    @property
    def why(self) -> list[str]:
        """Why these errors do not test the predictions, a line each; [] if they do."""
        invalid = f"INVALID: {self.stale}" if self.stale else ""
        return [line for line in (invalid, too_noisy(self.cells, self.scores)) if line]


def predicted_ahead(grid_file: Path | str, campaign: Path | str) -> tuple[int, str]:
    """Predict the runs of a campaign before they begin: (new predictions, their folder).

    Raises InputError.
    """
    grid, training, study = _opened(grid_file)
    cases = [item.case for item in read_campaign(Path(campaign))[1]]
    check_cases(training, cases)
    folder = Path(grid.predictions)
    with occupied(folder), working(f"validate: predicting {plural(len(cases), 'run')}"):
        return predict_held_out(study, folder, training, cases, learn=grid.learn), grid.predictions


def validated(grid_file: Path | str) -> Validated:
    """The scores of a GRID.toml. Raises InputError."""
    grid, training, study = _opened(grid_file)
    said = all_predictions(Path(grid.predictions))
    found = judge_held_out(study, said, training, _usable(load_all(grid.held_out), "held_out"))
    if found.unpredicted:
        progress(
            f"note: {found.unpredicted} of {found.runs} held-out runs left out: not predicted before "
            "they began"
        )
    emulated = [study.profile.environment.synthetic]
    return Validated(found.cells, found.scores, emulated, found.state, known_from(study.learned))


def text_of(found: Validated) -> str:
    """The tables of errors and scores."""
    parts = [f"SYNTHETIC: {way}\n" for way in found.synthetic if way] + [cell_table(found.cells), ""]
    parts += ["INVALID: these errors do not test the predictions (reason below)"] if found.why else []
    parts.append(score_table(found.scores))
    if not found.stale:
        parts += ["", state_text(found.state, found.before)]
    return "\n".join(parts)


def _opened(grid_file: Path | str) -> tuple[GridFile, list[Record], Predictor]:
    """The file, its training runs, and the predictor that they teach."""
    grid = read_grid(Path(grid_file))
    training = _usable(load_each(grid.training), "training")
    return grid, training, study_of(grid, training)


def _usable(records: list[Record], what: str) -> list[Record]:
    """The records that are not INVALID; tells how many are."""
    kept, note = not_invalid(records)
    if note:
        progress(f"note: {what}: {note}")
    return kept
