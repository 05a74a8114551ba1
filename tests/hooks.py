"""Fixtures and hooks that every room's tests share.

Serially: every test has a time limit, and the counts are appended to the file that FEMBENCH_TEST_TALLY names.
Under mpiexec every rank runs every test, and `ranks.Ranks` keeps them together.
"""

import contextlib
import faulthandler
import importlib
import json
import math
import os
import resource
import signal
from collections import Counter
from pathlib import Path

import pytest
from ranks import Ranks, launched_by_mpi

import fembench.base.progress

LIMIT = float(os.environ.get("FEMBENCH_TEST_LIMIT", "180"))  # seconds that one test may take
os.environ.pop("COLUMNS", None)  # what is printed is not fitted to a terminal, where no test asks for it
STDERR = pytest.StashKey()


fembench.base.progress.SILENCE = math.inf  # a busy machine adds no lines to those that tests expect


def pytest_configure(config):
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in a job that a shell runs in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.stash[STDERR] = os.dup(2)  # the true one: pytest captures 2 during tests
    if launched_by_mpi():
        from fembench.ranks import comm as door

        config.pluginmanager.register(Ranks(door, LIMIT, config.stash[STDERR]))
    config.args = marked(config)


RANKS = (1, 2, 3, 4)  # the numbers of ranks on which tests/run.sh starts the suite


def pytest_collection_modifyitems(config, items):
    """A test that names numbers of ranks, as `mark.mpi(2, 3)` does, is left out on any other number."""
    size = 1
    if launched_by_mpi():
        from fembench.ranks import comm as door

        size = door.world().size
    left_out = [item for item in items if not runs_on(size, item.get_closest_marker("mpi"))]
    items[:] = [item for item in items if item not in left_out]
    if hasattr(config, "workerinput"):  # of pytest-xdist: begun early, nothing slow is waited for at the end
        slow = Counter(item.path for item in items if item.get_closest_marker("slow"))
        items.sort(key=lambda item: -slow[item.path])
    config.hook.pytest_deselected(items=left_out)


def runs_on(size, mark):
    if unknown := set(mark.args if mark else ()).difference(RANKS):
        raise pytest.UsageError(f"mark.mpi{mark.args}: the suite never runs on {unknown} ranks")
    return not mark or not mark.args or size in mark.args


def pytest_ignore_collect(collection_path, config):
    return unmarked(collection_path, config) or None


def unmarked(path, config):
    """A session of one mark imports only the files that mention it: others would cost every rank time."""
    wanted = {"mpi", "alone"}.intersection(config.option.markexpr.split(" and "))
    if wanted and path.suffix == ".py" and path.is_file():
        text = path.read_text()
        return any(f"mark.{mark}" not in text for mark in wanted)
    return False


def marked(config):
    """The paths of a session without files that it would import in vain; one at least, as none means all."""
    files = [config.invocation_params.dir / path.partition("::")[0] for path in config.args]
    kept = [path for path, file in zip(config.args, files) if not unmarked(file, config)]
    return kept or config.args[:1]


def start_clock(item):
    """From now on, the test has its time limit; an earlier one is forgotten."""
    faulthandler.dump_traceback_later(LIMIT, exit=True, file=item.config.stash[STDERR])


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """When a test is repeated, give it its full time limit and new module fixtures.

    So it starts in a fresh folder, and judges another measurement.
    """
    if getattr(item, "execution_count", 1) > 1:  # pytest-rerunfailures counts
        start_clock(item)
        for definitions in item._fixtureinfo.name2fixturedefs.values():
            for definition in definitions:
                if definition.scope == "module":
                    definition.finish(item._request)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """A test that hangs, also inside MPI, ends the session with the place where it hangs."""
    start_clock(item)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


def pytest_terminal_summary(terminalreporter):
    """Lines 'passed N', 'failed N', 'skipped|failure|unsteady TEST: REASON' for tests/run.sh."""
    path, stats = os.environ.get("FEMBENCH_TEST_TALLY"), terminalreporter.stats
    a_worker = hasattr(terminalreporter.config, "workerinput")  # whose counts the main process adds up
    if path and not a_worker:
        failed = [*stats.get("failed", ()), *stats.get("error", ())]
        names = {report.nodeid for report in failed}
        told = [("failure", report) for report in failed]
        told += [("unsteady", report) for report in stats.get("rerun", ()) if report.nodeid not in names]
        lines = [f"{word} {report.nodeid}: {reason(report)}\n" for word, report in told]
        lines += [f"skipped {report.nodeid}: {report.longrepr[2]}\n" for report in stats.get("skipped", ())]
        with open(path, "a") as stream:
            stream.write(f"passed {len(stats.get('passed', ()))}\nfailed {len(failed)}\n")
            stream.writelines(lines)


def reason(report):
    """The line that says why a test failed, short enough for a summary."""
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash else str(report.longrepr)
    return " ".join(text.split())[:300]


@pytest.fixture(autouse=True)
def settings_of_one_test():
    """A verb sets variables for the jobs that it starts; those of a test end with it."""
    before = {name: value for name, value in os.environ.items() if name.startswith("FEMBENCH_")}
    yield
    for name in [name for name in os.environ if name.startswith("FEMBENCH_") and name not in before]:
        del os.environ[name]
    os.environ.update(before)


BATCH = ("SLURM_", "PBS_", "LSB_", "FLUX_", "OAR_", "PE_HOSTFILE", "PRTE_MCA_prte")


@pytest.fixture
def no_batch_system(monkeypatch):
    """No batch system and no setting of the user's around the test."""
    for name in [name for name in os.environ if name.startswith((*BATCH, "FEMBENCH_"))]:
        monkeypatch.delenv(name)


@pytest.fixture
def slurm(no_batch_system, monkeypatch):
    """A function that puts the test into a Slurm job on hosts with slots, such as 'n[1-3]', '2(x3)'."""

    def inside(hosts="n[1-3]", slots="2(x3)"):
        for name, value in {"JOB_ID": "7", "JOB_NODELIST": hosts, "TASKS_PER_NODE": slots}.items():
            monkeypatch.setenv(f"SLURM_{name}", value)

    return inside


@pytest.fixture
def files(tmp_path):
    """A function that puts {path: text} below a root folder, as of another machine, and returns that root."""

    def put(tree):
        for path, text in tree.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text)
        return tmp_path

    return put


@pytest.fixture
def script(tmp_path):
    """A function that writes a program: its path."""

    def write(name, text):
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return str(path)

    return write


@pytest.fixture
def from_benchmarks(monkeypatch):
    """A function: a module of benchmarks/ by its name."""
    monkeypatch.syspath_prepend(Path(__file__).parent.parent / "benchmarks")
    return importlib.import_module


@pytest.fixture
def full_disk():
    """A context in which no file can become larger than some bytes, as on a disk that is almost full."""

    @contextlib.contextmanager
    def within(n_bytes):
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    return within


@pytest.fixture
def unrendered(monkeypatch, not_laid_out):
    """Figures are drawn on, but their SVG is empty: rendering takes longer than all else on a page."""

    def empty(figure, stream, **options):
        stream.write("<svg></svg>")

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", empty)


@pytest.fixture
def not_laid_out(monkeypatch):
    """Figures are rendered, without arranging their panels first."""
    engine = "matplotlib.layout_engine.ConstrainedLayoutEngine.execute"
    monkeypatch.setattr(engine, lambda self, figure: None)


@pytest.fixture
def output(capsys):
    """A function: what a command prints; its exit status is 0."""
    return lambda *words: _told(capsys, words, 0).out


@pytest.fixture
def answer(output):
    """A function: what a command prints with --json, decoded."""
    return lambda *words: json.loads(output(*words, "--json"))


@pytest.fixture
def refusal(capsys):
    """A function: the one line with which a command is refused; its exit status is 2."""

    def line(*words):
        told = _told(capsys, words, 2).err
        assert told.count("\n") == 1, told
        return told

    return line


def _told(capsys, words, expected):
    from fembench.cli.main import main

    capsys.readouterr()
    status, told = main([*words]), capsys.readouterr()
    assert status == expected, told.err
    return told


@pytest.fixture
def comm():
    """All ranks. Import mpi4py as late as here: a serial test may start MPI programs of its own."""
    from fembench.ranks import comm as door

    return door.world()
