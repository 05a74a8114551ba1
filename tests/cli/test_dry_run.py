"""sweep --dry-run: each job with its ranks, hosts, mesh and expected duration; nothing is started."""

import contextlib
import io
import json
from pathlib import Path

import pytest
from planted_records import FROZEN

from fembench.base.terminal import fitting
from fembench.bench.campaign import read_campaign
from fembench.cli.main import main
from fembench.records.store import load, save


@pytest.fixture(autouse=True)
def job(tmp_path, slurm, monkeypatch):
    """A Slurm job on six hosts, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    slurm("n[1-6]", "4(x5),2")


def listed(capsys, text, *options):
    """(cells of each row by the heads, last line) of a dry run of a campaign."""
    Path("c.toml").write_text(f'name = "c"\n{text}')
    assert main(["sweep", "c.toml", "--dry-run", *options]) == 0
    heads, _, *rows, last = capsys.readouterr().out.splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in (heads, *rows)]
    return [dict(zip(cells[0], row)) for row in cells[1:]], last


def test_each_job_is_listed_with_its_ranks_hosts_mesh_and_sets(capsys):
    rows, last = listed(
        capsys,
        '[[cases]]\nequations_per_rank = 1_000\nranks = [1, "2 nodes", "all"]\nprecond = "jacobi"\n'
        'iterations = 50\nsets = 10\nseconds = 10.5\n[[cases]]\nhosts = "n6"\nshares = "7:1"\n',
    )
    assert {(row["ranks"], row["hosts"], row["mesh"], row["equations"]) for row in rows} == {
        ("1", "n1:1", "box:1000", "960"),
        ("8", "n1:4, n2:4", "box:8000", "8 100"),
        ("22", "n1 … n6: 6 hosts, 22 ranks", "box:22000", "22 050"),
        ("2", "n6:2", "m1", "630"),
    }
    assert {(row["case"], row["timed"]) for row in rows} == {
        ("sym · jacobi", "10 sets of 50 iterations, at least 10.5 s"),
        ("sym · 7:1", "10 sets, then until ± 2 % or 20 s"),
    }
    assert all("0:02" <= row["takes"] <= "0:59" for row in rows)
    assert last.startswith("4 runs; about ")
    assert last.endswith(" expected (at 8 GB/s per rank, 24 from caches; results/c has no records)")
    assert not Path("results").exists()


def test_on_a_terminal_what_is_timed_is_a_note_and_each_job_takes_a_line(capsys, monkeypatch):
    text = 'name = "c"\n[[cases]]\nmesh = ["m1", "m"]\nranks = [1, "node", "all"]\niterations = [50, 100]\n'
    Path("c.toml").write_text(text)
    assert main(["sweep", "c.toml", "--dry-run"]) == 0
    sink = io.StringIO()
    monkeypatch.setenv("COLUMNS", "100")
    with fitting(sink, contextlib.redirect_stdout):
        print(capsys.readouterr().out)
    found = sink.getvalue()
    assert found.count("[1]") == found.count("[2]") == 6 + 1  # the note
    assert found.count(" sets of 50 iterations") == 1


def test_a_dry_run_says_why_each_preconditioner_was_chosen(capsys):
    Path("c.toml").write_text('name = "c"\n[[cases]]\nmesh = ["m1", "m"]\nprecond = ["auto", "jacobi"]\n')
    assert main(["sweep", "c.toml", "--dry-run"]) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if "precond auto" in line]
    found = [("m1", "block-jacobi"), ("m", "multigrid")]
    begins = [f"sweep: {mesh} on 1 rank: precond auto: {name}, expected to solve " for mesh, name in found]
    assert sorted(line[: len(begin)] for line, begin in zip(sorted(lines), sorted(begins))) == sorted(begins)
    assert len(lines) == 2


def test_a_dry_run_names_each_case_in_words_with_its_id(capsys):
    rows, _ = listed(
        capsys,
        '[[cases]]\nmesh = "m1"\nranks = 2\nprecond = ["none", "jacobi"]\nemulate = "1,0.5"\nsets = 5\n',
    )
    _, runs = read_campaign(Path("c.toml"))
    ids = {run.case.method.precond: run.id for run in runs}
    assert [row["run"] for row in rows] == ["1", "2"]
    assert {(row["case"], row["timed"], row["id"]) for row in rows} == {
        ("sym · emulate 1,0.5", "5 sets", ids["none"]),
        ("sym · jacobi · emulate 1,0.5", "5 sets", ids["jacobi"]),
    }


def test_durations_are_expected_from_the_records_of_the_folder(capsys):
    runs = Path("results/c/runs")
    runs.mkdir(parents=True)
    record = load(FROZEN)
    save(record, runs)
    (runs / "damaged-r1.json").write_text("{")
    Path("part.vtu").touch()
    mine = {k: v for k, v in record.case.said().items() if k not in ("mesh", "ranks")}
    fields = "".join(f"{name} = {json.dumps(value)}\n" for name, value in mine.items())
    rows, last = listed(
        capsys, f'[[cases]]\nmesh = "m1"\nranks = [1, 2]\n{fields}[[cases]]\nmesh = "part.vtu"\n'
    )
    takes = {(row["mesh"], row["ranks"]): row["takes"] for row in rows}
    alone = takes.pop(("m1", "1"))
    assert takes == {("m1", "2"): "recorded", ("part.vtu", "1"): "–"}
    counts, _, expected = last.partition("; ")
    assert counts == "3 runs, 1 recorded already, 1 of unknown duration (mesh files)"
    assert expected == f"about {alone} expected (from 1 record in results/c)"
    assert alone.startswith("0:")


def test_no_job_is_expected_to_take_longer_than_the_campaign_allows(capsys):
    (row,), last = listed(capsys, 'timeout = 30\n[[cases]]\nmesh = "xl"\nsets = 1000\n')
    assert row["takes"] == "0:30"
    assert last.startswith("1 run; about 0:30 expected (")


def test_a_host_whose_memory_is_assumed_is_named(capsys, monkeypatch):
    monkeypatch.setattr("platform.node", lambda: "n1")
    Path("c.toml").write_text('name = "c"\n[[cases]]\nmemory = "1%"\nranks = "all"\n')
    monkeypatch.setattr("fembench.bench.campaign_hosts.memory_bytes", lambda: 64 << 30)
    assert main(["sweep", "c.toml", "--dry-run"]) == 0
    said = "memory of n2, n3, n4 and 2 more: not known, taken to be that of this host"
    assert said in capsys.readouterr().err


def test_a_dry_run_lists_the_run_of_a_damaged_record_as_one_to_repeat(capsys):
    Path("c.toml").write_text('name = "c"\n[[cases]]\n')
    _, (run,) = read_campaign(Path("c.toml"))
    path = Path("results/c/runs") / f"{run.id}.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"schema":')
    assert main(["sweep", "c.toml", "--dry-run", "--json"]) == 0
    said = capsys.readouterr()
    assert [row["recorded"] for row in json.loads(said.out)["runs"]] == [False]
    assert said.err == f"{path} is damaged (not valid JSON); its run is repeated\n"
    assert path.read_text() == '{"schema":'


STEP = "fembench was started by srun (step 7.0), but it starts the ranks itself"
FAST = '[[cases]]\nhosts = "fast"\n'
ONE_HOST = {"SLURM_JOB_ID": "", "SLURM_JOB_NODELIST": ""}


@pytest.mark.parametrize(
    ("text", "options", "variables", "line"),
    [
        ("", [], {"SLURM_STEP_ID": "0"}, STEP),
        ("", [], {"OMPI_COMM_WORLD_SIZE": "2"}, "fembench was started by an MPI launcher"),
        (FAST, [], {}, "hosts = 'fast': the speed of the hosts is not known; expected --machine FILE"),
        (FAST, ["--machine", "c.toml"], {}, "c.toml"),
        (FAST, ["--hostfile", "missing"], {}, "missing"),
        ("", ["--results", "other"], {}, "this folder holds another campaign"),
        *(
            (setting, [], variables, line)
            for variables in ({}, ONE_HOST)
            for setting, line in (
                ('map_by = "socket"\n', "map by 'socket': expected core, numa, host"),
                ('launcher = "mpirum"\n', "launcher 'mpirum': expected one of "),
                ('launcher_options = "--mca \'btl"\n', "a quote is not closed"),
            )
        ),
    ],
)
def test_a_dry_run_is_refused_as_the_sweep_is_before_its_first_run(
    refusal, monkeypatch, text, options, variables, line
):
    for name in ("FEMBENCH_LAUNCHER", "FEMBENCH_LAUNCHER_OPTIONS", "FEMBENCH_MAP_BY"):
        monkeypatch.setenv(name, "")  # they are set below, and restored
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    Path("other").mkdir()
    Path("other/campaign.toml").write_text('name = "c"\n[[cases]]\nmesh = "m3"\n')
    Path("c.toml").write_text(f'name = "c"\n{text}' + "[[cases]]\n" * ("[[" not in text))
    for dry in ([], ["--dry-run"]):
        assert line in refusal("sweep", "c.toml", *options, *dry)
    assert not list(Path().glob("results/**/*.json"))
