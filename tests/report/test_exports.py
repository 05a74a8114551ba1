"""Exports have the numbers of our tables: each is loaded with the program that it is for.

Readers that pin other versions of our libraries are in an environment of their own, .venv/readers.
"""

import gc
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from report_sample import campaign, make_record, named

from fembench.base.errors import InputError
from fembench.records.phases import ALLREDUCE, CG, CG_PARTS, NAMES, SEND, SPMV_INTERIOR, WAIT
from fembench.records.record import Event
from fembench.records.store import save
from fembench.records.times import times_of
from fembench.records.validity import judge
from fembench.report import writers
from fembench.report.formats import EXPORTS, export
from fembench.report.tables import read_campaign

replace = msgspec.structs.replace
PYTHON = Path(os.environ.get("FEMBENCH_VENV", sys.prefix)) / "readers" / "bin" / "python"
MESSAGES = (
    Event(0, CG, -1, 0.0, 5e-3),
    Event(0, SEND, 0, 1e-3, 2e-3, (1,), (816,)),
    Event(0, ALLREDUCE, 0, 3e-3, 4.5e-3, (), (8,)),
    Event(1, SPMV_INTERIOR, 0, -1e-3, 2e-3),
    Event(1, WAIT, 0, 2e-3, 2.5e-3, (0,), (816,)),
)
RECORDS = [  # two runs of m2 on one rank, one of every other case
    *campaign((1, 2, 4), ("m1", "m2")),
    make_record("m2", run=1),
    make_record("m1", 2, storage="sym"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    here = tmp_path_factory.mktemp("campaign")
    (here / "runs").mkdir()
    for record in RECORDS:
        save(record, here / "runs")
    return here


@pytest.fixture
def exported(folder, tmp_path):
    """A function: where the campaign is exported to."""
    return lambda name: export(name, read_campaign(folder), tmp_path)


def read_by(package, script, *words):
    """What a script prints in the environment of the readers, decoded."""
    if not list(PYTHON.parents[1].glob(f"lib/python*/site-packages/{package}")):
        pytest.skip(f"no {package} in {PYTHON.parents[1]}")
    done = subprocess.run([PYTHON, "-c", script, *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def medians():
    """(mesh, method, ranks, phase) -> seconds of the table of every phase."""
    table = named(RECORDS, "phases")
    keys = zip(table["mesh"], table["method"], table["ranks"].tolist(), table["phase"])
    return dict(zip(keys, table["median_s"].tolist()))


def test_every_format_of_the_command_line_has_a_writer():
    assert all(callable(getattr(writers, name.replace("-", "_"))) for name in EXPORTS)


def test_all_samples_of_csv_and_parquet_have_the_medians_of_the_table(exported):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    rows = pandas.read_csv(exported("csv"), keep_default_na=False, na_values={"set": "", "count": ""})
    other = pandas.read_parquet(exported("parquet"))
    assert list(rows) == list(other)
    for name in rows:
        assert rows[name].tolist() == other[name].tolist() or name in ("set", "count")
    assert rows["seconds"].sum() == other["seconds"].sum()
    timed = other[other["kind"] == "timed"]
    slowest = timed.groupby(["mesh", "storage", "ranks", "phase", "record", "set"])["seconds"].max()
    of_runs = slowest.groupby(level=[0, 1, 2, 3, 4]).median().groupby(level=[0, 1, 2, 3]).median()
    table = medians()
    found = {key: seconds for key, seconds in of_runs.items() if key[3] != "total"}
    assert len(found) > 40
    assert found == pytest.approx({key: table[key] for key in found})


EXTRA_P = """
import json, pathlib, sys
from extrap.fileio.file_reader.jsonlines_file_reader import read_jsonlines_file
from extrap.modelers.model_generator import ModelGenerator
found = {}
for path in pathlib.Path(sys.argv[1]).iterdir():
    read = read_jsonlines_file(str(path))
    for (callpath, metric), points in read.measurements.items():
        for one in points:
            where = dict(zip([p.name for p in read.parameters], one.coordinate.as_tuple()))
            found[json.dumps([path.stem, callpath.name, metric.name, where])] = one.median
models = ModelGenerator(read_jsonlines_file(str(pathlib.Path(sys.argv[1]) / "csr.jsonl"))).model_all()
print(json.dumps(found))
"""


def test_extra_p_reads_the_medians_of_the_table(exported):
    found = read_by("extrap", EXTRA_P, exported("extra-p"))
    equations = {r.case.question.mesh: r.mesh.n_equations for r in RECORDS}
    table, seen = medians(), 0
    for (mesh, method, ranks, phase), seconds in table.items():
        where = {"ranks": ranks, "equations": equations[mesh]} if method == "csr" else {"ranks": ranks}
        for path in (f"set->{phase}", f"set->cg->{phase}", f"run->{phase}", phase):
            if (key := json.dumps([method, path, "time", where])) in found:
                seen += 1
                assert found[key] == pytest.approx(seconds)
    assert seen == sum(seconds > 0 for seconds in found.values()) > 100


TALP = """
import json, pathlib, sys
from talp_pages.io.dataframe_handling import load_talp_json_df
found = {}
for path in pathlib.Path(sys.argv[1]).rglob("*.json"):
    for row in load_talp_json_df(path).to_dict("records"):
        del row["runTimestamp"], row["timestamp"]
        found[path.stem + " " + row["regionName"]] = row
print(json.dumps(found, default=str))
"""


def test_talp_pages_reads_the_factors_of_the_table(exported, tmp_path):
    place = exported("talp-pages")
    found = read_by("talp_pages", TALP, place)
    assert len(found) == 3 * len(RECORDS)
    table = named(RECORDS, "speedup_factors")
    times, seen = medians(), 0
    for record in (r for r in RECORDS if r.case.question.mesh == "m1" or r.case.placement.ranks > 1):
        case = record.case
        key = case.question.mesh, case.method.storage, case.placement.ranks
        row = list(zip(table["mesh"], table["method"], table["ranks"])).index(key)
        one = found[f"{record.id} Global"]
        assert one["parallelEfficiency"] == pytest.approx(table["parallel_efficiency"][row])
        assert one["mpiLoadBalance"] == pytest.approx(table["load_balance"][row])
        assert one["mpiCommunicationEfficiency"] == pytest.approx(table["communication_efficiency"][row])
        assert one["mpiLoadBalanceIn"] * one["mpiLoadBalanceOut"] == pytest.approx(one["mpiLoadBalance"])
        assert one["elapsedTime"] == pytest.approx(times[(*key, "assembly + cg")], abs=1e-9)
        assert found[f"{record.id} cg"]["elapsedTime"] == pytest.approx(times[(*key, "cg")], abs=1e-9)
        seen += 1
    assert seen > 5
    pages = [PYTHON.with_name("talp"), "ci-report", "-i", place, "-o", tmp_path / "pages", "--no-badge"]
    subprocess.run(pages, check=True, capture_output=True)
    assert "m1-csr" in (tmp_path / "pages" / "index.html").read_text()


HATCHET = """
import json, sys
from hatchet import GraphFrame
frame = GraphFrame.from_caliper(sys.argv[1])
rows = frame.dataframe.reset_index()
paths = {}
def walk(node, above=""):
    paths[node] = above + node.frame["name"]
    for child in node.children:
        walk(child, paths[node] + "/")
walk(frame.graph.roots[0])
rows["path"] = [paths[node] for node in rows["node"]]
print(json.dumps(rows[["path", "rank", "time", "time (inc)"]].values.tolist()))
"""
THICKET = """
import json, pathlib, sys
from thicket import Thicket
one = Thicket.from_caliper([str(p) for p in pathlib.Path(sys.argv[1]).iterdir()], disable_tqdm=True)
rows = one.dataframe.reset_index()
runs = dict(zip(one.metadata.index, one.metadata["id"]))
rows["id"] = [runs[profile] for profile in rows["profile"]]
cg = rows[rows["name"] == "cg.dot"]
facts = one.metadata[["id", "mesh", "verdict"]].values.tolist()
print(json.dumps([facts, cg.groupby("id")["time"].sum().to_dict()]))
"""


def test_hatchet_reads_the_whole_time_of_every_rank_and_where_it_went(exported):
    record = RECORDS[2]
    times = times_of(record)
    found = read_by("hatchet", HATCHET, exported("caliper") / f"{record.id}.json")
    exclusive = {(path, rank): seconds for path, rank, seconds, _ in found}
    inclusive = {(path, rank): seconds for path, rank, _, seconds in found}
    for rank in range(4):
        assert inclusive["run", rank] == pytest.approx(times.program[rank])
        assert exclusive["run", rank] == pytest.approx(times.unattributed[rank])
        cg = times.timed[:, rank, CG].sum()
        assert inclusive["run/timed sets/cg", rank] == pytest.approx(cg)
        loop = cg - times.timed[:, rank, CG_PARTS].sum()
        assert exclusive["run/timed sets/cg", rank] == pytest.approx(loop)
        assert inclusive["run/read", rank] == pytest.approx(0.02)


def test_thicket_reads_all_runs_with_their_cases(exported):
    facts, dots = read_by("thicket", THICKET, exported("caliper"))
    judged = {record.id: judge(record).status for record in RECORDS}
    assert sorted(facts) == sorted([r.id, r.case.question.mesh, judged[r.id]] for r in RECORDS)
    for record in RECORDS:
        every_set = times_of(record).all_sets[:, :, NAMES.index("cg.dot")]
        assert dots[record.id] == pytest.approx(every_set.sum())


def traced(tmp_path):
    """An archive of one traced run with messages."""
    pytest.importorskip("otf2")
    record = replace(make_record("m1", 2), events=MESSAGES)
    (tmp_path / "runs").mkdir()
    save(record, tmp_path / "runs")
    return export("otf2", read_campaign(tmp_path), tmp_path) / record.id / "traces.otf2"


def test_otf2_has_every_span_and_message_of_a_trace(tmp_path):
    path = traced(tmp_path)
    from otf2 import events, reader

    begun, spent, messages = {}, {}, []
    with reader.open(str(path)) as archive:
        assert [place.group.name for place in archive.definitions.locations] == ["rank 0", "rank 1"]
        for place, event in archive.events:
            if isinstance(event, events.Enter):
                begun[place.group.name, event.region.name] = event.time
            elif isinstance(event, events.Leave):
                key = place.group.name, event.region.name
                spent[key] = spent.get(key, 0) + (event.time - begun[key]) / archive.timer_resolution
            else:
                messages.append((place.group.name, type(event).__name__, event.time, event.msg_length))
    expected = {(f"rank {e.rank}", NAMES[e.phase]): e.end - e.begin for e in MESSAGES}
    assert spent == pytest.approx(expected, abs=1e-9)
    assert messages == [("rank 0", "MpiSend", 2_000_000, 816), ("rank 1", "MpiRecv", 3_500_000, 816)]


def test_otf2_print_reads_an_archive(tmp_path):
    if not shutil.which("otf2-print"):
        pytest.skip("no otf2-print")
    path = traced(tmp_path)
    printed = subprocess.run(["otf2-print", path], check=True, capture_output=True, text=True).stdout
    assert printed.count("ENTER") == printed.count("LEAVE") == len(MESSAGES)
    assert printed.count("MPI_SEND") == printed.count("MPI_RECV") == 1


def test_a_format_that_nothing_can_be_written_in_leaves_nothing(folder, tmp_path, refusal):
    said = refusal("report", str(folder), "--export", "vtu", "--out", str(tmp_path / "out"))
    assert "no run has solutions of runs with --fields" in said
    assert not list((tmp_path / "out").iterdir())


def test_what_is_there_is_not_replaced_in_a_folder_of_the_users(folder, tmp_path, output, refusal):
    words = ("report", str(folder), "--export", "csv", "--out", str(tmp_path))
    assert output(*words) == f"{tmp_path / 'times.csv'}\n"
    assert refusal(*words) == f"fembench: {tmp_path / 'times.csv'} exists; expected a folder without it\n"


def test_exports_are_beside_the_report_and_can_be_written_again(folder, answer):
    words = ("report", str(folder), "--export", "csv", "--export", "caliper")
    assert answer(*words) == answer(*words)
    places = answer(*words)["exports"]
    assert places == {"csv": str(folder / "exports/times.csv"), "caliper": str(folder / "exports/caliper")}
    assert len(list((folder / "exports/caliper").iterdir())) == len(RECORDS)


@pytest.mark.parametrize(("name", "package"), [("parquet", "pyarrow"), ("otf2", "otf2")])
def test_a_missing_package_is_named_with_what_installs_it(folder, name, package, monkeypatch, refusal):
    monkeypatch.setitem(sys.modules, package, None)
    said = refusal("report", str(folder), "--export", name)
    assert said == (
        f"fembench: {package} is not installed; install it with: {sys.executable} -m pip install {package}\n"
    )


@pytest.mark.parametrize("name", [name for name in EXPORTS if name not in ("parquet", "otf2", "vtu")])
def test_of_an_export_that_does_not_fit_on_the_disk_nothing_stays(name, folder, tmp_path, full_disk):
    campaign = read_campaign(folder)
    with full_disk(100), pytest.raises(InputError, match=f"^cannot write {tmp_path}/.*: File too large$"):
        export(name, campaign, tmp_path)
    assert not list(tmp_path.iterdir())


def test_of_an_archive_that_does_not_fit_on_the_disk_nothing_stays_and_its_library_says_nothing(
    tmp_path, full_disk, capfd
):
    traced(tmp_path)
    campaign, out = read_campaign(tmp_path), tmp_path / "out"
    with full_disk(100), pytest.raises(InputError, match=f"^cannot write {out / 'otf2'}: OTF2: "):
        export("otf2", campaign, out)
    gc.collect()  # it writes in its destructors, too
    assert capfd.readouterr().err == ""
    assert not list(out.iterdir())
