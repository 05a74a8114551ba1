"""The readers that fuzz.py tries, and a few small valid inputs of each."""

import contextlib
import importlib.util
import io
import json
import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

TESTS = Path(__file__).resolve().parent.parent / "tests"
sys.path[:0] = [str(TESTS)]

PROBLEM = """name = "bracket"
[material]
E = 210e9
nu = 0.3
[[constraints]]
on = {plane = "x=0"}
u = [0.0, 0.0, "free"]
[[constraints]]
on = {point = [0, 0, "max"]}
field = {gradient = [[1, 0, 0], [0, 1, 0], [0, 0, 1]]}
[[forces]]
on = {point = ["max", "max", "max"]}
force = [0.0, -500.0, 0.0]
[[tractions]]
on = {boundary = true}
traction = [1e6, 0.0, 0.0]
[body]
gravity = [0.0, -9.80665, 0.0]
"""
HELD = """name = "held"
[material]
E = 210e9
nu = 0.3
[[constraints]]
on = {boundary = true}
u = [0.0, 0.0, "free"]
[[constraints]]
on = {tag = "n"}
u = [0.0, 0.0, 0.0]
[[forces]]
on = {tag = "f"}
force = [0.0, 0.0, 500.0]
"""
CAMPAIGN = """name = "c"
repetitions = 2
seed = 3
[[cases]]
mesh = ["m1", "box:4x3x4:hex8"]
ranks = [1, 2, "cores", "half"]
shares = ["", "7:1"]
precond = "jacobi"
iterations = 50
[[cases]]
equations_per_rank = [1000, 2000]
ranks = ["node", "1 node"]
hosts = ["each", "all"]
per_node = [0, 1]
[[cases]]
memory = "25%"
hosts = "fast"
[[cases]]
mesh = "m2"
ranks = 2
balance = "amortised"
drain = "1@10"
emulate = "1,0.5"
"""
GRID = """machine = "machine.json"
training = "train"
held_out = "held"
predictions = "said"
learn = false
"""
LAB = """name = "lab"
network = "10.213.77.0/24"
[[hosts]]
name = "fast"
cpus = [0]
[[hosts]]
name = "slow"
cpus = [0]
speed = 0.5
rate = "100mbit"
slots = 2
"""
SCENARIO = """name = "x"
blocks = 8
iterations = 100
speeds = [1.0, 0.5]
[[events]]
at = 10
rank = 1
speed = 0.25
[[events]]
at = 20
blocks = [0, 1]
weight = 2.0
"""
PASL = """path = "PI"; // a farm
B1 = "f.class";
B2 = "g.class";
B3 = "h.class";
%%
T1 = B1(1) << NULL;
T2 = B2(10) << T1;
T3 = B2(5) << T1 >> result.dat;
T4 = B3(1) << T2, T3;
"""
SOURCE = """n = 10
BYTES = {"f": {"in": 4, "out": 4, "code": 879}}


def g(k: int, x: "double[n]", s):
    for i in range(k):
        for j in range(i, 3):
            s += x[i] * 2.0 / (j + 1)
    return s


def f(x: "double[30]", y: int):
    a: double = 1.0
    for i in range(n):
        if a > 1 and y < 2:
            a = a - int(a)
        else:
            a = -(a**2)
    if y > 3:
        return np.dot(x, x)
    return g(5, x, 2.0)
"""
MACHINES = """// machine 0: head
inter_sum_int[0]=[7.3E-9;7.4E-9]
// machine 1: itu
inter_sum_int[1]=[7.3E-9;7.4E-9]
inter_send[1][0](64)=[0.008;0.017]
inter_send[1][0](6400)=[0.08;0.17]
factor[1]=0.9994
"""
GRAPH = """{"name": "mine", "tasks": [{"name": "a", "seconds": 1.5}, {"name": "b", "seconds": 2}],
"edges": [{"from": "a", "to": "b", "bytes": 65536}]}"""
MODEL = "2\n1.0 a 10 20 linux /bin\n1,000.5 b 11 21 linux\n0 5\n5.5 0\n"
HOSTS = (
    "# hosts\nnode1 slots=2\nnode2 slots=4\nnode3\n",
    "# hosts\nnode1:2\nnode2:4\nnode3\n",
)  # Open MPI, MPICH
RANKS = "rank 0=node1 slot=0\nrank 1=node2 slot=0:1\n"
OPTIONS = [
    *(
        "7:1",
        "2*1,3",
        "8*1",
        "1,1,0.5",
        "1,0.85,1:0.7,1:1:0.3",
        "50e-6,125e6",
        "50e-6,125e6,2e-6",
        "node8=50e-6,125e6",
        "a,b:4",
        "a:2:2:0.5,b:1",
    ),
    *(
        "uff=a,b;puc=c",
        "2@100,0@300",
        "100:1,0.33;300:1,1",
        "m1:hex8",
        "box:4x3x4:hex8",
        "box:1000",
        "100mbit",
    ),
]


@dataclass(frozen=True)
class Reader:
    """Something that reads what a user wrote."""

    name: str
    read: Callable[[Path], object]
    seeds: list  # bytes, or trees of what TOML and JSON can hold
    suffix: str = ".txt"
    toml: bool = False


def readers(folder: Path) -> list[Reader]:
    """All of them; `folder` is for files that are made on the way."""
    made = *_slices(folder), *_forged_slices(folder)
    return [*_meshes(folder), *made, *_tables(), *_records(folder), *_texts(), *_of_studies()]


def _meshes(folder: Path) -> list[Reader]:
    """Every format that `fembench mesh convert` writes."""
    import meshio

    from fembench.base.errors import InputError
    from fembench.mesh.box import box
    from fembench.mesh.io import read, write
    from fembench.mesh.mesh import Mesh

    solid = box((1, 1, 1), "tet4", (1.0, 0.5, 1.0))
    tagged = Mesh.create(
        solid.x, solid.cells, solid.element, "m", {"point": np.array([0])}, {"x0": solid.facet_tags["x0"]}
    )
    suffixes = sorted(meshio.extension_to_filetypes)
    found: dict[str, list[bytes]] = {}
    for suffix in suffixes:
        for k, mesh in enumerate((tagged, box((1, 1, 1), "hex8", (1.0, 0.5, 1.0)))):
            path = folder / f"seed{k}{suffix}"
            try:
                write(mesh, path)
                read(path)
            except InputError:
                continue
            found.setdefault(suffix, []).append(path.read_bytes())
            path.unlink()
    for version in ("gmsh", "gmsh22"):
        for binary in (True, False):
            path = folder / "seed.msh"
            whole = meshio.Mesh(solid.x, [("tetra", solid.cells)])
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                meshio.write(path, whole, file_format=version, binary=binary)  # it warns
            found[".msh"].append(path.read_bytes())
            path.unlink()
    distinct: dict[bytes, str] = {}
    for suffix, seeds in found.items():  # some suffixes name one format
        distinct.setdefault(seeds[0], suffix)
    return [Reader(f"mesh {suffix}", read, found[suffix], suffix) for suffix in sorted(distinct.values())]


def _slices(folder: Path) -> list[Reader]:
    """Files of a sliced mesh, each beside the others as they were."""
    from fembench.mesh.box import Box
    from fembench.mesh.sliced import Sliced
    from fembench.mesh.slicing import source_of_box, write_sliced

    whole = folder / "slices"
    write_sliced(source_of_box(Box((2, 1, 1))), whole)
    files = {path.name: path.read_bytes() for path in whole.iterdir()}

    def reader(name: str) -> Reader:
        def read(path: Path) -> None:
            (whole / name).write_bytes(path.read_bytes())
            try:
                Sliced(whole).whole()
            finally:
                (whole / name).write_bytes(files[name])

        return Reader(f"slices {name}", read, [files[name]], Path(name).suffix)

    return [reader(name) for name in sorted(files)]


def _forged_slices(folder: Path) -> list[Reader]:
    """The same with check sums made to fit, read whole, and by a rank as its part."""
    from fembench.base.errors import InputError
    from fembench.bench.prepare import prepare
    from fembench.mesh.box import box
    from fembench.mesh.mesh import Mesh, summary
    from fembench.mesh.sliced import Manifest, Sliced, blocks, sealed
    from fembench.mesh.slicing import source_of_mesh, write_sliced
    from fembench.ranks.comm import alone
    from fembench.records.case import Case
    from fembench.timing.tracer import NullTracer

    two, whole, held = box((2, 1, 1)), folder / "forged", folder / "held.toml"
    held.write_text(HELD)
    cells = np.vstack([two.cells, two.cells + two.n_nodes])
    tags = {"n": [1, 1 + two.n_nodes]}, {"f": two.facet_tags["x0"]}, {"c": [0, 1]}
    write_sliced(source_of_mesh(Mesh.create(np.vstack([two.x, two.x + 9]), cells, "tet4", "m", *tags)), whole)
    files = {path.name: path.read_bytes() for path in whole.iterdir()}
    good = Sliced(whole).manifest

    def manifest_of(name: str, data: bytes) -> Manifest:
        """The manifest whose check sums are those of a file."""
        if name == "manifest.json":
            return msgspec.json.decode(data, type=Manifest)
        stem, head = name.removesuffix(".npy"), 10 + int.from_bytes(data[8:10], "little")
        width = (len(files[name]) - head) // good.rows[stem]
        rows = (data[head + b.start * width : head + b.stop * width] for b in blocks(good.rows[stem]))
        sums = tuple(map(zlib.crc32, (data[:head], *rows)))
        return msgspec.structs.replace(good, sums=good.sums | {stem: sums})

    def reader(name: str) -> Reader:
        def read(path: Path) -> None:
            data = path.read_bytes()
            (whole / name).write_bytes(data)
            try:
                with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError):
                    text = msgspec.json.encode(sealed(manifest_of(name, data)))
                    (whole / "manifest.json").write_bytes(text)
                with contextlib.suppress(InputError):  # the hash of the content does not fit
                    summary(Sliced(whole).whole())
                prepare(alone(), Case.of(mesh=str(whole), partitioner="rcb", problem=str(held)), NullTracer())
            finally:
                (whole / name).write_bytes(files[name])
                (whole / "manifest.json").write_bytes(files["manifest.json"])

        return Reader(f"forged {name}", read, [files[name]], Path(name).suffix)

    return [reader(name) for name in sorted(files)]


def _tables() -> list[Reader]:
    """What is written in TOML."""
    from fembench.balance.virtual import read_scenario
    from fembench.base.config import tomllib
    from fembench.bench.campaign import read_campaign
    from fembench.fem.problem import load_problem
    from fembench.model.grid import read_grid
    from fembench.synthetic.lab_cluster import read_cluster

    def seeds(*texts: str) -> list:
        return [tomllib.loads(text) for text in texts]

    return [
        Reader("problems", _problem(load_problem), seeds(PROBLEM), ".toml", toml=True),
        Reader("campaigns", read_campaign, seeds(CAMPAIGN), ".toml", toml=True),
        Reader("grids", read_grid, seeds(GRID), ".toml", toml=True),
        Reader("labs", lambda path: read_cluster(path, (0, 1)), seeds(LAB), ".toml", toml=True),
        Reader("scenarios", lambda path: read_scenario(str(path)), seeds(SCENARIO), ".toml", toml=True),
    ]


def _problem(load: Callable[[Path], object]) -> Callable[[Path], object]:
    """A problem is read, and set on a mesh."""
    from fembench.fem.parts import check_whole, whole_mesh
    from fembench.mesh.presets import resolve

    mesh = resolve("box:1x1x1")

    def read(path: Path) -> None:
        spec = load(path)
        check_whole(spec, whole_mesh(spec, mesh))

    return read


def _records(folder: Path) -> list[Reader]:
    """What fembench itself writes as JSON."""
    from planted_machine import planted_machine
    from planted_nodes import Planted, planted_nodes

    from fembench.base.files import Owner
    from fembench.model.from_record import graph_of_record
    from fembench.model.graph import GRAPH_SCHEMA, load_graph
    from fembench.model.predictor import Predictor, prediction_of
    from fembench.model.rates import rates_of
    from fembench.records.case import Case
    from fembench.records.contest import PEERS_SCHEMA, PeersRecord, SystemFacts, load_peers
    from fembench.records.nodes import load_nodes
    from fembench.records.prediction import load_prediction
    from fembench.records.profile import load_profile
    from fembench.records.store import glance, load, load_failure
    from fembench.records.weights import load_weights
    from fembench.report.history import series_of
    from fembench.weights.make import by_time
    from fembench.weights.slow_nodes import slow_nodes
    from fembench.workflows.comparison import compare
    from fembench.workflows.sweep_state import CampaignSight, Counts, SweepState, read_state, sentences

    path = TESTS / "data" / "record.json"
    record = load(path)
    small = msgspec.structs.replace(record, sets=record.sets[-2:])
    profile = planted_machine([1.0, 0.5], ("a", "b"))
    study = Predictor(profile, "0" * 64, rates_of(profile))
    said = study.predict(Case.of(mesh="box:3x3x3", ranks=2))
    peers = PeersRecord(
        schema=PEERS_SCHEMA,
        created=record.created,
        case=record.case,
        environment=record.environment,
        mesh=record.mesh,
        system=SystemFacts(n_rows=3, nonzeros=9, residual=1e-9),
        runs=(),
    )
    graph = {"schema": GRAPH_SCHEMA} | _plain(graph_of_record(record))
    counts = Counts(runs=3, verdicts={"VALID": 1}, left=60.0)
    doing = {"doing": "sweep: 2/3", "seconds": 5.0, "stage": "set 3", "counts": counts}
    state = SweepState(owner=Owner(1, "n1", record.created), written=record.created, **doing)
    return [
        Reader("records", load, [_plain(small)], ".json"),
        Reader("glances", lambda p: series_of([glance(p)]), [_plain(small)], ".json"),
        Reader("comparisons", lambda p: compare(path, p).tables(), [_plain(small)], ".json"),
        Reader("profiles", load_profile, [_plain(profile)], ".json"),
        Reader(
            "nodes",
            lambda p: slow_nodes(load_nodes(p)),
            [_plain(planted_nodes(4, {1: Planted(cores=0.8)}, ranks=2, rounds=6))],
            ".json",
        ),
        Reader("weights", load_weights, [_plain(by_time([small]))], ".json"),
        Reader("predictions", load_prediction, [_plain(prediction_of(study, said))], ".json"),
        Reader("peers", load_peers, [_plain(peers)], ".json"),
        Reader("graphs", load_graph, [graph], ".json"),
        Reader("failures", load_failure, [_failure(record)], ".json"),
        Reader(
            "campaign states",
            lambda p: [*sentences(CampaignSight(read_state(p), 0.0, False))],
            [_plain(state)],
            ".json",
        ),
    ]


def _failure(record) -> dict:
    plain = {
        "schema": record.schema,
        "id": "x",
        "created": record.created,
        "case": _plain(record.case),
        "kind": "crashed",
    }
    return plain | {"message": "x", "exit_status": 1, "output": ""}


def _plain(item) -> dict:
    from fembench.base.config import encode

    return json.loads(encode(item))


def _texts() -> list[Reader]:
    """What has a syntax of its own."""
    from fembench.launch.hosts import host_slots

    return [
        Reader("host files", lambda path: host_slots(str(path)), [text.encode() for text in (*HOSTS, RANKS)]),
        Reader("options", _options, [text.encode() for text in OPTIONS]),
    ]


def _of_studies() -> list[Reader]:
    """What the package fembench-studies reads; nothing if it is not installed."""
    if importlib.util.find_spec("fembench_studies") is None:
        return []
    from planted_environment import planted_environment

    from fembench.base.config import read_text
    from fembench.base.errors import InputError
    from fembench_studies.binaries.given import COSTS, load_given
    from fembench_studies.graphs.modeller import read_model
    from fembench_studies.pamela import machine_model, pamela_text, pasl
    from fembench_studies.pamela.build import steps
    from fembench_studies.pamela.source import analyse
    from fembench_studies.programs.record import APP_SCHEMA, AppCase, AppRecord, load_app
    from fembench_studies.scheduling.graph_files import read_graph

    registry = {"np.dot": "dot", "random": ""}

    def source(path: Path) -> None:
        found = analyse(read_text(path), where=str(path), registry=registry)
        found.sizes()
        for k, name in enumerate(sorted(found.functions)):
            # the first one must be read; the others need arguments, which it gives
            with contextlib.suppress(*[InputError] * (k > 0)):
                found.body(name)

    def task_graph(path: Path) -> None:
        read_graph(str(path))

    app = AppRecord(
        schema=APP_SCHEMA,
        id="pi",
        created="2026-01-02T03:04:05+00:00",
        case=AppCase(program="pi", ranks=2, tasks=4),
        environment=planted_environment(("a", "b")),
        predicted=None,
        seconds=(1.0, 1.1),
        busy=((0.5, 0.5), (0.5, 0.5)),
        done=((2, 2), (2, 2)),
        value=3.14,
        error=0.1,
        samples={"pi": ((1.0,), (2.0,))},
        messages={"64": ((1e-6,), (1e-6,))},
    )
    return [
        Reader("models", read_model, [MODEL.encode()]),
        Reader("apps", load_app, [_plain(app)], ".json"),
        Reader(
            "given", load_given, [{"costs": dict.fromkeys(COSTS, 1e-9), "loops": {"12": [9.5, 20]}}], ".json"
        ),
        Reader("pasl", lambda path: steps(pasl.load(str(path))), [PASL.encode()]),
        Reader(
            "pamela",
            lambda path: pamela_text.parse(read_text(path), str(path)),
            [(TESTS / "data" / "seed000_pi.pam").read_bytes()],
        ),
        Reader("machine models", machine_model.load, [MACHINES.encode()]),
        Reader("sources", source, [SOURCE.encode()]),
        Reader("task graphs", task_graph, [json.loads(GRAPH)], ".json"),
    ]


def _options(path: Path) -> None:
    """Every parser of an option's text; each may refuse it."""
    from fembench.balance.control import parse_drain
    from fembench.base.errors import FembenchError
    from fembench.launch.hosts import hostfile_of_names
    from fembench.mesh.presets import box_named
    from fembench.partition.shares import parse_shares
    from fembench.records.hlogp import parse_link
    from fembench.records.sites import sites_of
    from fembench.synthetic.lab_cluster import bits_per_second
    from fembench.synthetic.speeds import parse_changes, parse_hot_spots, parse_nodes, parse_speeds

    text, refusal = path.read_bytes().decode(errors="replace"), None
    for parse in (
        lambda: parse_shares(text, 2),
        lambda: parse_speeds(text, 3),
        lambda: parse_nodes(text),
        lambda: parse_drain(text, 4),
        lambda: parse_changes(text, (1.0, 1.0)),
        lambda: parse_hot_spots(text, 8),
        lambda: parse_link(text, overhead=True),
        lambda: hostfile_of_names(text),
        lambda: sites_of(("a", "b", "c"), text),
        lambda: box_named(text),
        lambda: bits_per_second(text),
    ):
        try:
            parse()
        except FembenchError as error:
            refusal = refusal or error
            if "\n" in str(error):
                raise
