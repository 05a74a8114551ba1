"""The printed numbers of thesis-000: those of Tab. 5.1 and 5.2 from the package, the rest from tests/data."""

import csv
import math
from pathlib import Path

from fembench.model.closed_form import TimeRange
from fembench_studies.pamela import pamela_text
from fembench_studies.pamela.machine_model import MachineModel
from fembench_studies.thesis_000 import farm_study

DATA = Path(__file__).parents[3] / "tests" / "data"
PRINTED = Path(farm_study.__file__).parent / "data"
PI = DATA / "seed000_pi.pam"


def rows(name):
    own = DATA / f"seed000_{name}.csv"
    with open(own if own.exists() else PRINTED / f"farm_{name}.csv", newline="") as stream:
        return list(csv.DictReader(stream))


def factors(count):
    """W of the `count` fastest workers, Tab. 5.1."""
    return [float(r["performance_factor_w"]) for r in rows("machines") if r["performance_factor_w"]][:count]


def printed_tasks(factors, tasks, static=1.0):
    """Tasks of each worker as Eq. 3.6 is printed: rounded up, so that their sum may exceed the total."""
    return tuple(math.ceil(static * tasks * w / sum(factors) - 1e-9) for w in factors)


def machine_text():
    """The text of App. B."""
    return "\n".join(
        f"inter_{r['operation']}[{r['machine']}]=[{r['min_s_per_operation']};{r['max_s_per_operation']}]"
        for r in rows("machine_model")
    )


def sends_text():
    """Its lines of messages; their unit is not named."""
    return "".join(
        f"\ninter_send[{r['from_machine']}][{r['to_machine']}]({r['message_size_unit_not_stated']})="
        f"[{r['min_unit_not_stated']};{r['max_unit_not_stated']}]"
        for r in rows("machine_model_send")
    )


def pi_model():
    return pamela_text.parse(PI.read_text())


def toy():
    """Two workers, three tasks; operations a, b, c are the three bodies."""
    send = {1: TimeRange(0.1, 0.2)}
    return MachineModel(
        {
            0: {"a": TimeRange(0.5, 0.5), "c": TimeRange(0.25, 0.25)},
            1: {"b": TimeRange(1, 2)},
            2: {"b": TimeRange(3, 4)},
        },
        {(0, 1): send, (0, 2): send},
    )
