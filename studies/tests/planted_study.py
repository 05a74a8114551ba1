"""A study of made-up records: dense work is the square of a part, csr work its size."""

import msgspec
import numpy as np
from planted_records import planted, set_of

from fembench.partition.shares import parse_shares
from fembench.records import phases as ph
from fembench_studies.thesis_004.measure import StudyFolder
from fembench_studies.thesis_004.plan import CORES
from fembench_studies.thesis_004.tables import DISPLACEMENT

SIZES = {  # nodes, cells, equations, restrained, iterations
    "m1": (245, 864, 630, 105, 211),
    "m2": (936, 3960, 2592, 216, 328),
    "m3": (1960, 9126, 5460, 420, 428),
    "s": (10000, 50000, 30000, 900, 700),
    "box:100000": (34000, 180000, 100000, 1000, 1100),
}

TIMERS = {
    "ticks_per_second": 2e9,
    "timers": [
        {"timer": name, "language": "C", "best": 20.0, "worst": 90.0, "mean": 25.0, "mean_ns": 12.5}
        for name in ("rdtsc", "rdtscp", "gettimeofday", "MPI_Wtime")
    ],
}


def record_of(want, run_id):
    """The record of a run of this case on machines exactly as planned."""
    case = want.case
    nodes, cells, equations, fixed, iterations = SIZES[case.question.mesh]
    shares = np.asarray(parse_shares(case.placement.shares, case.placement.ranks))
    n = case.placement.ranks
    cores = CORES.get(want.where, n)
    speeds = (
        np.array([float(s) for s in case.synthetic.emulate.split(",")])
        if case.synthetic.emulate
        else np.full(n, min(1, cores / n))
    )
    made = planted(speeds, shares, hosts=["here"] * n, id=run_id)
    timed = case.stop.iterations or iterations
    work = (shares * equations) ** 2 * 1e-9 if case.method.storage == "dense" else shares * equations * 1e-7
    seconds = np.zeros((n, len(ph.NAMES)))
    seconds[:, ph.ASSEMBLY] = 1e-9 * cells * shares / speeds
    seconds[:, ph.SPMV_INTERIOR] = case.synthetic.dilate * timed * work / speeds
    seconds[:, ph.SEND] = 1e-6 * (n > 1)  # a single rank sends nothing
    busy = seconds.sum(axis=1)
    seconds[:, ph.WAIT] = busy.max() - busy
    seconds[:, ph.CG] = seconds[:, list(ph.CG_PARTS)].sum(axis=1)
    one = set_of(seconds, timed, seconds[:, [ph.ASSEMBLY, ph.CG]].sum(axis=1))
    part = np.rint(shares * cells).astype(int)
    facts = msgspec.structs.replace(
        made.partition,
        cells=tuple(part.tolist()),
        dofs=tuple(np.rint(shares * equations).astype(int).tolist()),
    )
    return msgspec.structs.replace(
        made,
        case=case,
        sets=(one,) * case.effort.sets,
        partition=facts,
        mesh=msgspec.structs.replace(
            made.mesh,
            name=case.question.mesh,
            hash=case.question.mesh,
            n_nodes=nodes,
            n_cells=cells,
            n_equations=equations,
            n_fixed=fixed,
        ),
        solve=msgspec.structs.replace(made.solve, iterations=timed, converged=True),
        verification=msgspec.structs.replace(
            made.verification,
            load_displacement=(0.0, DISPLACEMENT.get(case.question.mesh, -1.0), 0.0),
            reactions=(0.0, 500.0, 0.0),
        ),
        environment=msgspec.structs.replace(
            made.environment,
            synthetic=f"emulated speeds {case.synthetic.emulate}" if case.synthetic.emulate else "",
        ),
    )


class PlantedStudy(StudyFolder):
    """A study with made-up records instead of measurements."""

    def measure(self, wants, ended=lambda done: None, *, only_kept=False):
        for want in wants:
            self.records[want] = [record_of(want, run.id) for run in self._runs(want)]
