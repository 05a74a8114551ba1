"""Who may import whom. This table is the architecture (docs/architecture.md); the test keeps it true.

Imports inside functions count as well. A new room is entered here and in the picture, in one commit.
"""

import ast
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

import fembench
from fembench.base.config import read_toml
from fembench.records.phases import NAMES

ROOT = Path(fembench.__file__).parent
STUDIES = ROOT.parent / "studies" / "fembench_studies"
GROUND = "base stats methods records kernels timing mesh partition fem"
LAB = f"{GROUND} ranks device host synthetic solve launch bench characterize peers balance"
MAY_IMPORT = {
    # ground: pure functions and plain data
    "base": "",
    "stats": "base",
    "methods": "base",
    "records": "base stats methods",
    "kernels": "base",
    "timing": "base records kernels",
    "mesh": "base",
    "partition": "base mesh records",
    "fem": "base mesh kernels",
    # lab: runs under MPI, measures, writes records
    "ranks": "base records mesh partition kernels timing",
    "device": "base",
    "host": "base records kernels timing ranks",
    "synthetic": "base records timing ranks host",
    "solve": "base records methods kernels timing fem ranks",
    "launch": "base records ranks host",
    "bench": f"{GROUND} ranks device host synthetic solve launch",
    "characterize": f"{GROUND} ranks host synthetic solve launch bench",
    "peers": f"{GROUND} ranks device host solve launch bench",
    "balance": f"{GROUND} ranks host synthetic solve launch bench",
    # office: runs on a laptop, reads records, reasons
    "weights": "base stats records partition",
    "model": "base stats records methods mesh partition fem",
    "report": "base stats methods records mesh weights model",
    # roof: the only places that see both
    "workflows": f"{LAB} weights model report",
    "cli": "base records report workflows",
}
DOORS = {  # package -> the one module, or room, that may import it
    "mpi4py": "ranks/comm",
    "petsc4py": "solve/petsc",
    "cupy": "device/cuda",
    "pyopencl": "device/opencl",
    "pymetis": "partition/methods",
    "meshio": "mesh/io",
    "matplotlib": "report/plots",
    "ruptures": "report/history",
    "shtab": "cli/verbs",
    "otf2": "report/writers",
    "pynvml": "host/energy",
    "pyarrow": "report/writers",
    "argparse": "cli",  # functions below it take values
}
# import paths in strings: what a room may name and somebody else loads, which imports nothing at start
MAY_NAME = {
    "methods": "kernels solve balance",  # builders of storages, preconditioners and recurrences
    "launch": "bench balance",  # programs of ranks
}


@cache
def tree(path):
    """A module, parsed once for all tests."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes(path):
    """All nodes of a module, found once for all tests."""
    return list(ast.walk(tree(path)))


THESES = re.compile(r"(?<![a-z])thes[ie]s|seed[ _-]?00\d", re.IGNORECASE)


def imports(path):
    """Full names of all that a module imports, wherever in it."""
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import; write the full name"
            if node.module == "fembench":  # from fembench import base
                yield from (f"fembench.{alias.name}" for alias in node.names)
            else:
                yield node.module
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "import_module":
            yield from (
                a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)
            )


def modules(room):
    return sorted((ROOT / room).rglob("*.py"))


def where(path):
    """A module's place in the house: 'solve/petsc'; a package counts as its folder."""
    return path.relative_to(ROOT).with_suffix("").as_posix()


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_a_room_imports_only_what_the_table_allows(room):
    allowed = {room, *MAY_IMPORT[room].split()}
    for path in modules(room):
        for name in imports(path):
            top, *rest = name.split(".")
            assert top != "fembench" or not rest or rest[0] in allowed, f"{where(path)} imports {name}"


def test_no_two_modules_of_tests_have_one_name():
    """pytest imports them all into one process."""
    folders = (Path(__file__).parent, STUDIES.parent / "tests")
    names = Counter(
        path.name
        for here in folders
        for path in here.rglob("*.py")
        if path.name not in ("conftest.py", "sitecustomize.py")
    )
    assert [name for name, times in names.items() if times > 1] == []


def test_each_package_with_a_door_comes_in_by_it():
    for path in (p for p in ROOT.rglob("*.py")):
        for name in imports(path):
            door = DOORS.get(name.split(".")[0])
            here = where(path)
            assert door is None or here == door or here.startswith(f"{door}/"), (
                f"{here} imports {name}; door: {door}"
            )


def project_table():
    return read_toml(ROOT.parent / "pyproject.toml", dict)["project"]


IMPORT_PATH = re.compile(r"fembench(\.[a-z_]\w*)+(:[\w.]+)?")


def paths_in_strings(path):
    """The import paths that a module spells as text: "fembench.room.module:name", name optional."""
    for node in nodes(path):
        text = getattr(node, "value", None) if isinstance(node, ast.Constant) else None
        if isinstance(text, str) and IMPORT_PATH.fullmatch(text):
            yield text


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_an_import_path_in_a_string_obeys_the_table_or_is_declared(room):
    allowed = {room, *MAY_IMPORT[room].split(), *MAY_NAME.get(room, "").split()}
    for path in modules(room):
        for name in paths_in_strings(path):
            assert name.split(".")[1] in allowed, f"{where(path)} names {name}"


def test_every_room_that_the_table_of_names_declares_is_named():
    named = {
        room: {name.split(".")[1] for path in modules(room) for name in paths_in_strings(path)}
        for room in MAY_NAME
    }
    for room, others in MAY_NAME.items():
        assert set(others.split()) == named[room] - set(MAY_IMPORT[room].split()) - {room}, room


def names_of(requirements):
    return {re.split(r"[><=;\[ ]", text)[0] for text in requirements}


def third_party(path):
    return {name.split(".")[0] for name in imports(path)} - sys.stdlib_module_names - {"fembench"}


def test_types_do_not_depend_on_which_optional_packages_are_installed():
    tools = read_toml(ROOT.parent / "pyproject.toml", dict)["tool"]
    needed = names_of(project_table()["dependencies"]) | names_of(
        project_table()["optional-dependencies"]["report"]
    )
    skipped = {
        name.removesuffix(".*")
        for override in tools["mypy"]["overrides"]
        for name in override["module"]
        if override.get("follow_imports") == "skip" and override["follow_imports_for_stubs"]
    }
    imported = set().union(*(third_party(path) for path in ROOT.rglob("*.py")))
    assert imported - needed <= skipped


def test_only_the_page_and_its_plots_need_the_packages_of_the_extra_report():
    extra = names_of(project_table()["optional-dependencies"]["report"])
    users = {where(path) for path in ROOT.rglob("*.py") if third_party(path) & extra}
    assert users == {"report/page", "report/plots/canvas"}


def test_the_table_has_no_cycle():
    seen = set()
    for room, allowed in MAY_IMPORT.items():
        assert set(allowed.split()) <= seen, f"{room} may import something above it"
        seen.add(room)


def test_the_table_lists_every_room_and_no_other():
    assert set(MAY_IMPORT) == {
        path.name for path in ROOT.iterdir() if path.is_dir() and list(path.glob("*.py"))
    }


def test_the_lab_and_the_office_do_not_meet_below_the_roof():
    office, lab = {"weights", "model", "report"}, set(LAB.split()) - set(GROUND.split())
    for room in set(MAY_IMPORT) - {"workflows", "cli"}:
        met = set(MAY_IMPORT[room].split()) | {room}
        assert not (met & office and met & lab), room


def test_the_product_knows_studies_by_their_entry_points_only():
    paths = [*ROOT.rglob("*.py"), *(ROOT.parent / "tests").rglob("*.py")]
    for path in (p for p in paths if STUDIES.name in p.read_text(encoding="utf-8")):
        assert not [name for name in imports(path) if name.startswith(STUDIES.name)], path


def test_the_studies_name_ever_fewer_things_of_the_product_that_are_not_public():
    """`import fembench` and fembench.errors are public. Whoever needs a name less lowers the number."""
    parts = (node for path in STUDIES.rglob("*.py") for node in nodes(path))
    taken = {
        (node.module, alias.name)
        for node in parts
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("fembench.")
        for alias in node.names
    }
    assert len([name for name in taken if name[0] != "fembench.errors"]) <= 181


def test_only_programs_end_the_process():
    """So that no function of `import fembench` raises SystemExit."""
    for path in (p for p in ROOT.rglob("*.py") if p.relative_to(ROOT).parts[0] != "cli"):
        functions = [node for node in nodes(path) if isinstance(node, ast.FunctionDef)]
        for node in (part for function in functions for part in ast.walk(function)):
            may_end = isinstance(node, ast.Raise) or getattr(node, "attr", "") == "exit"
            ends = ast.unparse(node) if may_end else ""
            assert not ends.startswith(("sys.exit", "raise SystemExit")), f"{where(path)}:{node.lineno}"


def test_product_code_does_not_know_theses():
    """Elsewhere a formula cites author, year and equation; docs/sources.md says what came from where."""
    texts = [p for p in ROOT.rglob("*") if p.suffix in {".py", ".pyx", ".c", ".h", ".toml", ".json", ".j2"}]
    said = {
        path.relative_to(ROOT).as_posix() for path in texts if THESES.search(path.read_text(encoding="utf-8"))
    }
    assert said == set()


def test_no_class_name_occurs_twice():
    names = Counter(
        node.name for path in ROOT.rglob("*.py") for node in nodes(path) if isinstance(node, ast.ClassDef)
    )
    assert [name for name, times in names.items() if times > 1] == []


def test_no_module_name_occurs_more_than_twice():
    names = Counter(path.stem for path in ROOT.rglob("*.py") if path.parent.name != "cli")  # named as verbs
    assert [name for name, times in names.items() if times > 2 and name != "__init__"] == []


SPELLED = {name for name in NAMES if not name.isalpha()} | {"cg."}  # the others are words of other things too
FACTS = {"peers"}  # rooms that look up facts of other codes under names that phases have as well
CASES = {"case", "effort"}  # they have a number of sets
RECORDS = {"record", "records", "first", "base", "raw"}
TIMING = {"records/times", "records/store", "bench"}  # that reads times, that counts them, that writes them


def looked_up(node):
    """What an expression looks up by a literal: x["a"], x.get("a"), x.index("a"), "a" in x."""
    if isinstance(node, ast.Subscript):
        found = [node.slice]
    elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In):
        found = [node.left]
    else:
        called = isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("get", "index")
        found = node.args[:1] if called else []
    return [one.value for one in found if isinstance(one, ast.Constant)]


def test_a_name_of_a_module_means_one_thing():
    """Of two constants with one name, the second would silently stand for the first."""
    for path in sorted([*ROOT.rglob("*.py"), *STUDIES.rglob("*.py")]):
        body = tree(path).body
        single = [n.target for n in body if isinstance(n, ast.AnnAssign)]
        targets = [t for n in body if isinstance(n, ast.Assign) for t in n.targets] + single
        named = [n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)]
        named += [n.name for n in body if isinstance(n, (ast.FunctionDef, ast.ClassDef))]
        assert [n for n, times in Counter(named).items() if times > 1 and n != "_"] == [], path


def test_phases_are_spelled_in_their_list_and_nowhere_else():
    for path in (p for p in ROOT.rglob("*.py") if where(p) != "records/phases"):
        spelled = {node.value for node in nodes(path) if isinstance(node, ast.Constant)} & SPELLED
        assert not spelled, f"{where(path)} spells {spelled}; use the numbers and NAMES of records/phases.py"
        if where(path).split("/")[0] not in FACTS:
            found = {value for node in nodes(path) for value in looked_up(node)} & set(NAMES)
            assert not found, f"{where(path)} looks up {found}; use records/phases.py"


def raw_times(node):
    """What an expression takes of a record's own arrays of times: record.sets, record.setup, record.total."""
    if isinstance(node, ast.ImportFrom):
        return {alias.name for alias in node.names} & {"SetTimes"}
    if not isinstance(node, ast.Attribute):
        return set()
    value = node.value.value if isinstance(node.value, ast.Subscript) else node.value
    owner = getattr(value, "attr", getattr(value, "id", ""))
    raw = (
        owner not in {*CASES, ""}
        if node.attr == "sets"
        else owner in RECORDS and node.attr in ("setup", "total")
    )
    return {f"{owner}.{node.attr}"} if raw else set()


def test_times_leave_a_record_through_one_door():
    for path in (p for p in ROOT.rglob("*.py") if not {where(p), where(p).split("/")[0]} & TIMING):
        found = {name for node in nodes(path) for name in raw_times(node)}
        assert not found, f"{where(path)} uses {found}; use Times(record)"


def test_package_files_hold_a_docstring_and_nothing_else():
    for path in set(ROOT.rglob("__init__.py")) - {ROOT / "__init__.py"}:
        body = tree(path).body
        assert [type(node) for node in body] == [ast.Expr], f"{where(path)} holds code, or no docstring"


def test_importing_fembench_imports_nothing_else():
    """Every rank of a job pays for it."""
    code = "import sys; before = set(sys.modules); import fembench; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert [n for n in done.stdout.split() if n.startswith(("fembench.", "numpy", "msgspec", "mpi4py"))] == []


def test_a_process_that_starts_ranks_does_not_load_mpi4py():
    """It would become an MPI process itself, and some launchers start no ranks from one."""
    starters = [
        path.relative_to(ROOT.parent).with_suffix("").as_posix().replace("/", ".")
        for path in sorted(ROOT.rglob("*.py"))
        if {"fembench.launch.run_job", "fembench.launch.case_job"} & set(imports(path))
    ]
    assert {"fembench.workflows.peers", "fembench.workflows.characterize"} <= set(starters)
    code = "import importlib, sys\nfor name in sys.argv[1:]:\n    importlib.import_module(name)\n"
    code += "    assert 'mpi4py' not in sys.modules, name"
    done = subprocess.run([sys.executable, "-c", code, *starters], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_assertions_in_the_package_only_narrow_types():
    """So that python -O, which drops them, changes nothing."""
    for path in ROOT.rglob("*.py"):
        for node in nodes(path):
            assert not (isinstance(node, ast.Name) and node.id == "__debug__"), where(path)
            if isinstance(node, ast.Assert):
                text = ast.unparse(node.test)
                assert re.fullmatch(r"[\w.\[\]]+ is not None|isinstance\([\w.]+, [\w |]+\)", text), (
                    f"{where(path)}: assert {text}"
                )


def test_the_notebook_interface_belongs_to_the_office():
    rooms = {
        name.split(".")[1]
        for name in imports(ROOT / "workflows" / "notebook.py")
        if name.startswith("fembench.")
    }
    assert rooms <= {"base", "records", "report", "weights"}


def test_the_page_for_newcomers_shows_this_table():
    page = (ROOT.parent / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = [
        [cell.strip(" `") for cell in line.split("|")[1:-1]]
        for line in page.splitlines()
        if line.startswith("| `")
    ]
    shown = {room: set(allowed.replace("ground", GROUND).split()) - {"–"} for room, _, allowed in rows}
    assert {room: allowed | {"base"} for room, allowed in shown.items() if room in MAY_IMPORT} == {
        room: set(allowed.split()) | {"base"} for room, allowed in MAY_IMPORT.items()
    }


SOUGHT = 18  # things that newcomers look for


def test_what_newcomers_look_for_stands_in_the_room_whose_description_names_it():
    page = (ROOT.parent / "docs" / "architecture.md").read_text(encoding="utf-8")
    rooms = dict(re.findall(r"^\| `(\w+)` \| (.*?) \| [^|]* \|$", page, re.M))
    places = re.findall(r"^\| ([^|`]+?) \| `(\w+)/([\w./]+)` \|$", page, re.M)
    assert len(places) == SOUGHT
    for term, room, module in places:
        assert (ROOT / room / module).exists(), f"{term}: no {room}/{module}"
        naming = [name for name, says in rooms.items() if term in says]
        assert naming == [room], f"{term} is in {room}, and described in {naming}"
