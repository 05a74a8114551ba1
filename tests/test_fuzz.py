"""Inputs that fuzzing found, which once ended in a traceback or not at all; and the fuzzer itself."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from fembench.base.config import read_json, read_toml
from fembench.base.errors import LONGEST, InputError
from fembench.bench.campaign import read_campaign
from fembench.fem.problem import ProblemSpec
from fembench.launch.hosts import host_slots
from fembench.mesh.io import read
from fembench.partition.shares import parse_shares
from fembench.records.contest import load_peers
from fembench.records.store import load

SCRIPTS = Path(__file__).resolve().parent.parent / "scripts"
PERMAS = (
    "$COOR\n"
    + "".join(f"{n} {n} 0 0\n" for n in range(1, 9))
    + "!\n$ELEMENT TYPE=HEXFO8\n1 1 2 4 3 5 6 8 7\n!\n$ELEMENT TYPE=HEXFO8\n1\n!\n"
)
DIGITS = "9" * 5000
MANY = list(range(1, 401))
NESTED = "[" * 5000
XML = (
    '<?xml version="1.0"?>\n<VTKFile type="UnstructuredGrid" version="0.1" byte_order="LittleEndian">\n'
    '<UnstructuredGrid><Piece NumberOfPoints="1" NumberOfCells="0"><Points>\n'
    '<DataArray type="Float64" Name="Points" NumberOfComponents="0" format="ascii">0 0 0</DataArray>\n'
    "</Points></Piece></UnstructuredGrid></VTKFile>\n"
)


def problem(path):
    return read_toml(path, ProblemSpec)


@pytest.mark.parametrize(
    ("reader", "name", "text"),
    [
        (read, "x.mdpa", "Begin Properties 0\nEnd Properties\nBegin Nodes"),
        (read, "x.dat", 'TITLE = "x"\nVARIABLES = "X", "Y", "Z"\nZONE NODES = 8, ELEMENTS = 6,\n'),
        (read, "x.dato", PERMAS),
        (read, "x.msh", f"$MeshFormat\n4.1 0 8\n$EndMeshFormat\n${'A' * 70_000}\n1\n"),
        (read, "x.su2", "NDIME= 3\nNPOIN= 1\n0 0 0\nNELEM= 2\n"),
        (read, "x.f3grid", f"* GRIDPOINTS\nG\t1\t{'(' * 3000}\n"),
        (read, "x.vtu", XML),
        (problem, "x.toml", f"material = {{E = {DIGITS}}}\n"),
        (problem, "x.toml", f"name = {NESTED}\n"),
        (problem, "x.toml", f'[[constraints]]\non = {{plane = "{DIGITS}"}}\n'),
        (problem, "x.toml", "[[forces]]\non = {point = [1e308, 0, 0]}\n"),
        (lambda path: read_json(path, dict), "x.json", NESTED),
        (load, "x.json", NESTED),
        (load_peers, "x.json", '{"schema": ' + '{"x": ' * 300 + "1" + "}" * 301),
        (read_campaign, "x.toml", 'name = "c"\n[[cases]]\nranks = 2199023255552\n'),
        (read_campaign, "x.toml", 'name = "c"\nrepetitions = 2147483647\n[[cases]]\nranks = 1\n'),
        (read_campaign, "x.toml", f'name = "c"\n[[cases]]\nranks = {MANY}\nseed = {MANY}\n'),
        (lambda path: host_slots(str(path)), "hosts", f"node1 slots={DIGITS}\n"),
    ],
)  # fmt: skip
def test_what_fuzzing_found_is_refused_in_one_line(tmp_path, reader, name, text):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        reader(path)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) <= LONGEST + 1
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("reader", [load, problem, read_campaign, lambda path: host_slots(str(path))])
def test_a_device_is_refused_for_reading_it_may_never_end(reader):
    with pytest.raises(InputError, match="cannot read /dev/null: a device; expected a file"):
        reader(Path("/dev/null"))


def test_shares_of_more_ranks_than_there_are_anywhere_are_refused():
    with pytest.raises(InputError, match="1 to 1000000"):
        parse_shares("", 2**41)


@pytest.fixture(scope="module")
def fuzz():
    pytest.importorskip("hypothesis")
    sys.path.insert(0, str(SCRIPTS))
    try:
        return runpy.run_path(str(SCRIPTS / "fuzz.py"))
    finally:
        sys.path.remove(str(SCRIPTS))


@pytest.mark.parametrize(
    ("read", "what"),
    [
        (lambda path: 1 // 0 if b"7" in path.read_bytes() else None, "ZeroDivisionError"),
        (lambda path: print("7") if b"7" in path.read_bytes() else None, "printed"),
        (lambda path: (path.parent / "more").touch(), "left \\['more'\\]"),
    ],
)
def test_the_fuzzer_finds_planted_faults_and_shrinks_them(fuzz, read, what):
    from fuzz_inputs import Reader

    done, data, message = fuzz["hunt"](Reader("planted", read, [b"17 42 foo\n", b"1\n"]), 200, 10.0, 1)
    assert done > 0
    assert re.search(what, message)
    assert len(data) <= 10  # a seed as it is, or less: no mutation is needed


@pytest.mark.slow
def test_fuzzing_prints_counts_and_leaves_nothing_behind(tmp_path):
    pytest.importorskip("hypothesis")
    words = [sys.executable, str(SCRIPTS / "fuzz.py"), "--cases", "15", "--only", "options,grids,problems"]
    found = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert found.returncode == 0, found.stdout
    assert re.search(r"^15 cases, 3 readers, 0 of them fail", found.stdout, re.M)
    assert list(tmp_path.iterdir()) == []
    unknown = subprocess.run(
        [*words[:-1], "nothing"], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert unknown.returncode == 2
