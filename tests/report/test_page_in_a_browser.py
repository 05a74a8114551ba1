"""The page of a report in a headless browser: at three widths, in both colour schemes, and of many runs."""

import html
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace
from planted_environment import on_hosts_with
from report_sample import HOST, campaign, environment, make_failure, make_record

from fembench.records.store import save
from fembench.report import page

NAMES = ("chromium", "chromium-browser", "google-chrome")
BROWSER = next(filter(None, map(shutil.which, NAMES)), None)
QUIET = ["headless", "no-sandbox", "no-first-run", "hide-scrollbars"]
QUIET += [f"disable-{name}" for name in ("gpu", "quic", "sync", "background-networking", "component-update")]
HEAD = "<script>const errors = []; console.error = onerror = text => { errors.push(text); };</script>"
FRAME = """<!DOCTYPE html><iframe width="{width}" height="1900" style="border: 0" src="{name}"></iframe>
<script>onload = () => document.body.append(frames[0].document.querySelector("#found"));</script>"""
PRINT = """<script>for (const when of ["never", "beforeprint", "afterprint"]) {
  dispatchEvent(new Event(when));
  document.title += ` ${document.querySelectorAll("details[open]").length}`;
}</script>"""
SORT = """<script>const head = document.querySelector("th[tabindex]");
const sorted = () => head.getAttribute("aria-sort");
head.click();
document.title += ` ${document.querySelectorAll("th button").length} ${sorted()}`;
head.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter" }));
document.title += ` ${sorted()}`;</script>"""
LOOK = (Path(__file__).parent / "look.js").read_text(encoding="utf-8")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="no chromium: apt-get install chromium"),
]


def looked_at(index, width, *, dark=False):
    """What look.js finds in a page that is `width` pixels wide."""
    text = index.read_text(encoding="utf-8")
    copy, frame = (index.with_name(f"{name}-{width}-{dark}.html") for name in ("look", "frame"))
    text = text.replace("<head>", f"<head>{HEAD}", 1).replace("</body>", f"<script>{LOOK}</script></body>")
    copy.write_text(text, encoding="utf-8")
    frame.write_text(FRAME.format(width=width, name=copy.name), encoding="utf-8")  # a window has 500 or more
    scheme = f"--blink-settings=preferredColorScheme={0 if dark else 1}"
    found = dumped(frame, scheme, "--allow-file-access-from-files", "--window-size=1500,2000")
    copy.unlink()
    frame.unlink()
    return json.loads(html.unescape(re.search(r'<pre id="found">(.*?)</pre>', found, re.DOTALL)[1]))


def dumped(path, *options):
    """A page as the browser has it when its scripts have run."""
    command = [BROWSER, *(f"--{name}" for name in QUIET), f"--user-data-dir={path.parents[1]}/browser"]
    command += [*options, "--dump-dom", f"file://{path}"]
    return subprocess.run(command, capture_output=True, text=True, timeout=120).stdout


def built(folder, *items):
    (folder / "runs").mkdir(parents=True)
    for item in items:
        save(item, folder / "runs")
    return page.build(folder)


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    """A report with every kind of verdict, a failure, long names, and tables that are folded."""
    worse = [make_record("m1", 4, status="PROVISIONAL", run=1), make_record("m2", 2, status="INVALID", run=2)]
    named = make_record("m1", 2, run=3, label="a label of a user who has a great deal to say about this run")
    return built(tmp_path_factory.mktemp("sample"), *campaign(), *worse, named, make_failure())


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1400, 1024, 390])
def test_nothing_is_cut_off_faint_lost_or_wrong(sample, width, dark):
    found = looked_at(sample, width, dark=dark)
    assert (found["width"], found["dark"]) == (width, dark)
    assert found["errors"] == []
    assert (found["clipped"], found["outside"], found["unmarked"]) == ([], [], [])
    assert found["beyond"] == []  # remarks stand below their rows,
    assert found["needless"] == []  # but where they have room beside them
    assert width < 1024 or found["beside"] > 0
    assert found["faint"] == {}
    assert found["lost"] == []
    files = [to for to in found["links"] if not to.startswith("#")]
    assert len(files) > 20
    assert [to for to in files if not (sample.parent / to).is_file()] == []
    assert width < 1400 or found["scrolled"] <= 2  # tables wider than the page, each in its own box
    assert width < 1400 or found["broken"] == []  # names of runs and rules are on one line


def test_no_cell_overlaps_another_where_remarks_stand_below_rows_of_names_that_are_not_broken(tmp_path):
    odd = environment(2, hosts=(HOST, replace(HOST, name="node9", cpu_model="Other")), synthetic="emulated")
    runs = [make_record("m1", 2, environment=odd, **shares) for shares in ({}, {"shares": "0.683,0.317"})]
    runs = [replace(on_hosts_with(one, others_percent=40.0), id=f"r{k}") for k, one in enumerate(runs)]
    found = looked_at(built(tmp_path, *runs), 1400)
    assert (found["clipped"], found["beyond"]) == ([], [])


def titled(index, script):
    """The words of the title of a page after a script."""
    copy = index.with_name("tried.html")
    copy.write_text(
        index.read_text(encoding="utf-8").replace("</body>", f"{script}</body>"), encoding="utf-8"
    )
    title = re.search("<title>(.*?)</title>", dumped(copy))[1]
    copy.unlink()
    return title.split()


def test_printing_unfolds_notes_but_no_folded_tables_and_folds_them_again(sample):
    text = sample.read_text(encoding="utf-8")
    notes = text.count('<details class="more">')
    assert 0 < notes < text.count("<details")
    assert titled(sample, PRINT)[-3:] == ["0", str(notes), "0"]


def test_a_click_anywhere_on_a_head_sorts_as_does_enter_and_no_button_keeps_it_from_being_repeated_in_print(
    sample,
):
    assert titled(sample, SORT)[-3:] == ["0", "ascending", "descending"]


@pytest.mark.alone
def test_the_page_of_200_runs_opens_in_two_seconds(tmp_path):
    ranks = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
    runs = [
        record
        for storage in ("csr", "sym")
        for run in range(4)
        for record in campaign(ranks, storage=storage, run=run, sets=3)
    ]
    assert looked_at(built(tmp_path, *runs[:200]), 1400)["milliseconds"] < 2000
