"""pytest under mpiexec: every rank runs every test, rank 0 alone prints, a failure is everybody's.

After each test the ranks meet and tell each other who failed. So all count alike, stop alike and exit
alike, and rank 0 prints what another rank saw. A rank that fails while the others wait for it inside MPI
finds nobody at the meeting: it prints its own failure and aborts the job.
"""

import io
import os
import sys
import tempfile
import time
import zlib
from array import array

import pytest

PATIENCE = 10.0  # seconds that a failed rank waits for the others
LAUNCHER_VARIABLES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK", "MPI_LOCALNRANKS")


def launched_by_mpi():
    """Whether an mpiexec started this process; asked without importing MPI."""
    return any(name in os.environ for name in LAUNCHER_VARIABLES)


class Ranks:
    """The pytest plugin of one rank. `comm` carries its own messages alone."""

    def __init__(self, door, limit, stderr):
        self.door, self.comm, self.limit, self.stderr = door, door.world().Dup(), limit, stderr
        self.failures = []  # of the running test, on this rank
        # a folder of its own: pytest tidies its temporary folders, and would tidy the other ranks' away
        self.temporary = tempfile.TemporaryDirectory(prefix="fembench-tests-", ignore_cleanup_errors=True)
        os.environ["PYTEST_DEBUG_TEMPROOT"] = self.temporary.name

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session):
        """All but rank 0 fall silent."""
        if self.comm.rank:
            session.config.pluginmanager.getplugin("terminalreporter")._tw._file = io.StringIO()
            os.environ.pop("FEMBENCH_TEST_TALLY", None)

    def pytest_collectreport(self, report):
        if report.failed:
            self.failures.append(f"rank {self.comm.rank}, collection:\n{report.longreprtext}")

    def pytest_collection_finish(self, session):
        """Ranks that collected different tests would wait for each other forever."""
        self.meet("the end of collection")
        found = ([item.nodeid for item in session.items], session.testsfailed)
        if any(other != found for other in self.comm.allgather(found)):
            self.abort(f"has other tests than another rank ({len(found[0])} tests, {found[1]} errors)")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item, call):
        report = yield
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)  # one line for pytest's summary
            head = f"rank {self.comm.rank}, {report.when}: {crash.message if crash else ''}"
            self.failures.append(f"{head}\n{report.longreprtext}")
        if report.when == "teardown":
            self.tell(item, report)
        return report

    def tell(self, item, report):
        """Meet after a test; where only others failed, this rank's report fails with what they saw."""
        self.meet(item.nodeid)
        everyone = self.comm.allgather(self.failures)
        others = "\n\n".join(
            text for rank, texts in enumerate(everyone) for text in texts if rank != self.comm.rank
        )
        if others and self.failures:
            report.sections.append(("other ranks", others))
        elif others:
            report.outcome, report.longrepr = "failed", others
        self.failures = []

    def pytest_unconfigure(self):
        """Nobody leaves before rank 0 has printed: some launchers end the job at the first exit."""
        sys.stdout.flush()
        self.temporary.cleanup()
        self.meet("the end of the session")

    def meet(self, place):
        """A barrier with patience, where ranks find out that they are not at the same place."""
        label = zlib.crc32(place.encode())
        mine, extremes = array("q", (label, -label)), array("q", (0, 0))
        request, start = self.comm.Iallreduce(mine, extremes, self.door.MAX), time.monotonic()
        patience = min(PATIENCE, self.limit / 2) if self.failures else self.limit
        while not request.Test():
            if time.monotonic() - start > patience:
                self.abort(f"waited {patience:.0f} s in vain for the other ranks after {place}")
            time.sleep(0.0005)
        if extremes[0] != -extremes[1]:
            self.abort(f"is at {place}, another rank elsewhere")

    def abort(self, complaint):
        message = "\n".join((*self.failures, f"rank {self.comm.rank} {complaint}: job aborted"))
        os.write(self.stderr, f"{message}\n".encode())
        self.comm.Abort(1)
