"""Cost of messages on this machine and slowness H of loaded hosts, compared with Mendes (2004)."""

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

import fembench
from fembench.base.files import write_atomic
from fembench.characterize.estimate import latencies
from fembench.model.heterogeneity import by_clock, by_load, by_queue
from fembench.records.network import Network, PairSamples
from fembench.records.profile import Profile, load_profile, network_disturbed
from fembench.report.plots.canvas import Plot
from fembench.report.table import Table
from fembench_studies.attempts import Tell
from fembench_studies.charts import Panel
from fembench_studies.claims import StudyClaim, error_claim, most_claim
from fembench_studies.declared import captions
from fembench_studies.programs.real_messages import error_percent
from fembench_studies.programs.record import used_by_others
from fembench_studies.thesis_001.grid_plan import MICRO, Row, printed

H_LAWS: dict[str, tuple[str, float, Callable[[Row], float]]] = {  # law -> (table, printed mean, estimate)
    "queue (4.1)": (
        "4_27",
        14.4,
        lambda r: by_queue(*_floats(r, "h_calibrated", "queue_standard", "queue_now")),
    ),
    "load (4.2)": ("4_28", 9.4, lambda r: by_load(*_floats(r, "h_calibrated", "load_now"))),
    "clock (4.3)": (
        "4_29",
        5.3,
        lambda r: by_clock(*_floats(r, "h_calibrated", "wall_time_us", "cpu_time_us")),
    ),
}

SIZES = ",".join(str(8 << k) for k in range(20))  # 8 B to 4 MiB, the messages of fork and join
MOST_RANKS = 4  # of fork and join
TRIES = 3  # of measurements that others disturb
LARGE, MODES = 1 << 17, 5.0  # bytes; per cent by which the ways of sending may differ from there on
CALIBRATED = 180.0  # seconds that a calibration may take (Herai 2005)
TEXTS = captions("thesis_001")
LOADED = {"4_39": "Os", "4_40": "Or", "4_41": "L"}  # tables of a parameter, hosts idle and loaded


def _floats(row: Row, *names: str) -> list[float]:
    return [float(row[name]) for name in names]


def measure_network(
    folder: Path, cores: int, tell: Tell, number: int = 1, *, only_kept: bool = False
) -> Profile | None:
    """The profile of the network between the ranks here, in the pass of this number. It is kept; if others
    disturbed it, it is measured again. Raises RunFailedError."""
    path = folder / ("machine.json" if number == 1 else f"machine-{number}.json")
    profile = load_profile(path) if path.exists() else None
    if only_kept:
        return profile
    for _ in range(TRIES):
        disturbed = network_disturbed(profile) if profile else ""
        if profile and not disturbed:
            break
        why = f"again: {disturbed}" if disturbed else "about a minute"
        tell(f"measuring messages between the ranks here: {why}")
        profile = _measured(path, str(max(2, min(cores, MOST_RANKS))))
    return profile


def _measured(path: Path, ranks: str) -> Profile:
    with tempfile.TemporaryDirectory() as scratch:  # this process has locked the study's own folder
        made = Path(scratch, "machine.json")
        asked = ("--network", "--sizes", SIZES, "--ranks", ranks, "-o", str(made))
        fembench.verb("characterize", "--quick", *asked)
        write_atomic(path, made.read_bytes())
    return load_profile(path)


def claims(profile: Profile) -> list[StudyClaim]:
    """MPI_Send takes as long as MPI_Isend and MPI_Wait in all (3.2); the calibration is short."""
    busy = max(profile.environment.hosts, key=lambda h: h.others_percent)
    reason = used_by_others(busy.others_percent, busy.others_resolution, busy.name)
    apart = _modes_apart(profile.network) if profile.network else []
    return [
        error_claim(
            f"messages of {LARGE >> 10} KiB or more: MPI_Send against MPI_Isend", MODES, apart, reason
        ),
        most_claim("calibration of the machine", CALIBRATED, [profile.seconds], reason, unit="s"),
    ]


def _modes_apart(network: Network) -> list[float]:
    """|difference| of half a round trip between the ways of sending, in per cent, by pair and size."""
    trips = {(s.measure, s.mirror, s.m, s.mode): float(np.median(s.rtt)) for s in network.samples}
    return [
        100 * abs(took / trips[a, b, m, "isend"] - 1)
        for (a, b, m, mode), took in trips.items()
        if mode == "send" and m >= LARGE and (a, b, m, "isend") in trips
    ]


def message_table(network: Network) -> Table:
    """Tables 4.15 and 5.2: messages on one host."""
    theirs = {int(float(r["message_bytes"])): r for r in printed("table_4_15")}
    lam = {int(float(r["message_bytes"])): r for r in printed("table_5_2")}
    names = ("latency_us", "send_overhead_us", "receive_overhead_us")
    rows = []
    for mode in ("isend", "send"):
        for s in sorted((s for s in network.samples if s.mode == mode), key=lambda s: s.m):
            said = [
                float(t[s.m][f"{mode}_{n}"]) if s.m in t else np.nan for t in (theirs, lam) for n in names
            ]
            rows.append((s.m, mode, *(t / MICRO for t in _parameters(s)), *said))
    return TEXTS.table("messages", rows, seconds=network.seconds)


def _parameters(s: PairSamples) -> list[float]:
    """Medians of L, Os and Or, seconds."""
    return [float(np.median(x)) for x in (latencies(s), s.os_measure, s.or_mirror)]


def waiting_table(network: Network) -> Table:
    """Table 5.1: time of a task that shares its processor with a waiting one, relative to its time alone."""
    rows = printed("table_5_1")
    ratio = {
        name: max(float(r[f"{name}_same_unit_us"]) / float(r[f"{name}_separate_units_us"]) for r in rows)
        for name in ("mpich_g2", "lam")
    }
    polling = network.polling if network.polling else np.nan
    return TEXTS.table("waiting", [(polling, ratio["mpich_g2"], ratio["lam"])])


def slowness_table() -> Table:
    """Tables 4.27 to 4.29, recomputed from the printed loads and clocks."""
    rows = []
    for name, (number, mean, law) in H_LAWS.items():
        found = [error_percent(float(r["h_measured"]), law(r)) for r in printed(f"table_{number}")]
        rows.append((name, float(np.mean(found)), mean, max(found)))
    return TEXTS.table("slowness", rows)


def loaded_table() -> Table:
    """Tables 4.39 to 4.41: Os, Or and L between loaded hosts, relative to idle ones."""
    rows = []
    for number, name in LOADED.items():
        ratios = [float(r["loaded"]) / float(r["alone"]) for r in printed(f"table_{number}")]
        rows.append((name, float(np.median(ratios)), min(ratios), max(ratios)))
    return TEXTS.table("loaded", rows)


def message_plot(network: Network) -> Plot:
    """L, Os and Or by message size, as in Figs 4.10 and 5.3 to 5.5."""
    panels = []
    theirs = {int(float(r["message_bytes"])): r for r in printed("table_5_2")}
    some = [64 << (2 * k) for k in range(11)]
    each = sorted((s for s in network.samples if s.mode == "isend" and s.m in some), key=lambda s: s.m)
    names = [_size(s.m) for s in each]
    for k, (title, name) in enumerate(
        (("L", "latency_us"), ("Os", "send_overhead_us"), ("Or", "receive_overhead_us"))
    ):
        series = {
            "here": [_above_zero(_parameters(s)[k] / MICRO) for s in each],
            "thesis, LAM": [_above_zero(float(theirs[s.m][f"isend_{name}"])) for s in each],
        }
        panels.append(Panel(title, names, series, "µs", "bytes"))
    return TEXTS.figure("messages", panels)


def _above_zero(value: float) -> float:
    return value if value > 0 else float("nan")


def _size(n_bytes: int) -> str:
    return (
        f"{n_bytes}"
        if n_bytes < 1024
        else f"{n_bytes // 1024}K"
        if n_bytes < 1 << 20
        else f"{n_bytes >> 20}M"
    )
