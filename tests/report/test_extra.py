"""Without the packages of the extra `report` tables are printed, and a line says what the page lacks."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

REFERENCE = Path(__file__).parents[2] / "results" / "reference"
BLOCKED = (
    "import sys; sys.modules.update(dict.fromkeys(('jinja2', 'markupsafe', 'matplotlib')));"
    "from fembench.cli.main import main; sys.exit(main())"
)


def fembench(*words, cwd):
    return subprocess.run([sys.executable, "-c", BLOCKED, *words], capture_output=True, text=True, cwd=cwd)


def test_without_the_extra_tables_are_printed_and_the_page_alone_is_refused_in_one_line(tmp_path):
    shutil.copytree(REFERENCE / "runs", tmp_path / "runs")
    done = fembench("report", str(tmp_path), cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    how = f"{sys.executable} -m pip install matplotlib jinja2"
    assert done.stderr == f"fembench: jinja2 is not installed; install it with: {how}\n"
    *_, last = done.stdout.splitlines()
    assert last == "report: the page is not written"
    assert re.search(r"\| m3 +\| sym +\| 2 +\|", done.stdout)
    told = fembench("report", str(tmp_path), "--json", cwd=tmp_path)
    assert (told.returncode, told.stderr) == (0, "")
    tree = json.loads(told.stdout)
    assert tree["report"] is None
    assert len(tree["tables"]["overview"]) == 10
    assert not (tmp_path / "report").exists()


def test_without_the_extra_a_notebook_gets_its_tables():
    code = BLOCKED.split(";")[:2]
    code = ";".join([*code, f"import fembench; print(fembench.load({str(REFERENCE)!r}).summary())"])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "m3" in done.stdout
