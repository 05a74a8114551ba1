"""What one reading of each clock costs on this machine."""

from fembench.records.record import ClockCertificate
from fembench.timing.certificate import certify
from fembench.timing.experiment import CALLS, Experiment, run_experiment
from fembench.timing.timer_tables import as_text, as_tree

__all__ = ["as_text", "as_tree", "timed"]


def timed(calls: int = CALLS) -> tuple[Experiment, ClockCertificate, str]:
    """(each timer; the certificate of a run's clock; why MPI_Wtime is missing, if it is)."""
    try:
        from fembench.ranks import comm

        experiment, note = run_experiment(calls, comm.MPI.Wtime, comm.address("MPI_Wtime")), ""
    except (ImportError, RuntimeError) as error:  # mpi4py without an MPI library raises RuntimeError
        experiment = run_experiment(calls)
        note = f"MPI_Wtime not measured, no MPI here: {str(error).splitlines()[0]}"
    return experiment, certify(), note
