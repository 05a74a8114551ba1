"""The folder that `fembench report` writes."""

import csv
import html.parser
import io
import json
import math
import re
from pkgutil import resolve_name
from unittest.mock import Mock

import msgspec
import numpy as np
import pytest
from report_sample import HOST, campaign, environment, make_failure, make_record, peers_record

from fembench.base.errors import InputError
from fembench.cli.main import main
from fembench.mesh.box import box
from fembench.mesh.io import read
from fembench.records.contest import save_peers
from fembench.records.phases import ALLREDUCE, CG, SEND
from fembench.records.record import Event
from fembench.records.store import save
from fembench.report import page, tables, writers
from fembench.report.plots.gallery import gallery
from fembench.report.results import results
from fembench.report.table import declared

replace = msgspec.structs.replace
ONE, TWO = make_record(), make_record(ranks=2)
VOID = {"meta", "br", "img", "link", "hr"}


class Reader(html.parser.HTMLParser):
    """Checks that tags nest; collects what a browser would fetch."""

    def __init__(self, text):
        super().__init__()
        self.open, self.fetched, self.words = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)
        if tag in ("img", "script", "link", "iframe", "image", "use"):
            self.fetched += [v for k, v in attrs if k in ("src", "href", "xlink:href")]

    def handle_startendtag(self, tag, attrs):
        if tag in ("image", "use"):
            self.fetched += [v for k, v in attrs if k in ("href", "xlink:href")]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


@pytest.fixture
def folder(tmp_path, unrendered):
    (tmp_path / "here" / "runs").mkdir(parents=True)
    return tmp_path / "here"


def keep(folder, *items):
    for item in items:
        save(item, folder / "runs")
    return folder


def small_mesh():
    mesh = box((2, 1, 2), "tet4")
    return mesh, (mesh.x[mesh.cells].mean(axis=1)[:, 0] > 0.5).astype(np.int32)


def keep_fields(folder, record):
    mesh, part = small_mesh()
    np.savez_compressed(
        folder / "runs" / f"{record.id}.fields.npz",
        x=mesh.x,
        cells=mesh.cells,
        element="tet4",
        u=1e-6 * mesh.x,
        von_mises=np.arange(mesh.n_cells, dtype=float),
        part=part,
    )


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A report of one mesh on 1 and 2 ranks with fields, a failure, and nasty words in a label and a host."""
    folder = tmp_path_factory.mktemp("built")
    (folder / "runs").mkdir()
    strange = environment(2, hosts=(replace(HOST, name="<i>host</i>"),))
    odd = make_record(ranks=2, run=1, label="<script>alert(1)</script> & |", environment=strange)
    keep(folder, ONE, TWO, odd, make_failure())
    keep_fields(folder, TWO)
    return page.build(folder)


@pytest.mark.row("004:9.1.10")
def test_a_campaign_becomes_one_page_that_fetches_nothing(built):
    text = built.read_text()
    found = Reader(text)
    assert all(link.startswith(("#", "data:")) for link in found.fetched)
    assert "@import" not in text
    assert 'src="http' not in text
    order = [
        found.words.index(w)
        for w in ("Summary", "Verdict", "Times", "Speedup", "Communication", "Every rule", "Provenance")
    ]
    assert order == sorted(order)
    assert text.count("<svg ") == len(list(built.with_name("plots").iterdir()))


def test_the_first_screen_is_the_headline_and_two_plots(built):
    text = built.read_text()
    first = text[text.index('<section id="summary">') : text.index('<section id="verdict">')]
    assert re.findall("<h3.*?>(.*?)</h3>", first) == [
        "Headline",
        "Speedup and efficiency of cg against ranks",
        "A set of assembly and CG against ranks, csr",
    ]
    assert first.index("<table") < first.index("<figure>")
    assert text.count("A set of assembly and CG against ranks, csr</h3>") == 1


def test_of_a_long_note_two_lines_are_shown_and_the_rest_is_folded():
    sentence = "A sentence of fifty characters, which is not long."
    assert page.brief(" ".join([sentence] * 5)) == (" ".join([sentence] * 3), " ".join([sentence] * 2))
    assert page.brief(sentence) == (sentence, "")
    long = f"{'x' * 300}."
    assert page.brief(f"{long} {sentence}") == (long, sentence)


def test_every_note_of_the_page_begins_with_a_sentence_that_fits_two_lines(unrendered):
    made = tables.every_table(campaign(), [make_failure()], peers_record())
    notes = {t.name: t.note for t in made} | {p.name: p.caption for p in gallery(results(campaign()))}
    shown = {name: page.brief(note)[0] for name, note in notes.items()}
    assert {name: text for name, text in shown.items() if len(text) > page.BRIEF} == {}


def test_numbers_are_sorted_by_their_values_and_texts_by_themselves():
    @declared("t", "T", "", "name; cg_s; low_s high_s: interval")
    def made():
        return [("a", 0.0123, (1.0, 2.0)), ("b" * 30, None, (math.nan, 1.0))]

    first, second = page.rows_of(made())
    assert first == (
        '<tr><td class="wrap">a</td><td class="number" data-v="0.0123">12.3 ms</td>'
        '<td class="number" data-v="1.0">1–2 s</td></tr>'
    )
    assert second.count('data-v=""') == 2


def test_page_and_markdown_begin_with_the_conclusions_and_json_has_them(folder, output):
    keep(folder, ONE, TWO)
    tree = json.loads(output("report", str(folder), "--json"))
    first, *_ = tree["conclusions"]
    assert any("2 ranks" in text for text in tree["conclusions"])
    report = folder / "report"
    for name, before in (("index.html", "<nav>"), ("report.md", "## Verdict")):
        text = re.sub("</?a( .*?)?>", "", (report / name).read_text())
        assert text.index(first) < text.index(before)
    assert output("report", str(folder)).startswith(f"{first}\n")


def test_the_verdict_links_to_the_table_that_says_why(folder):
    keep(folder, make_record(status="PROVISIONAL"), make_record("m1", 2, status="PROVISIONAL", run=1))
    text = page.build(folder).read_text(encoding="utf-8")
    (target,) = re.findall(r'see <a href="#([\w-]+)">Why runs are not VALID</a>', text)
    assert text.count(f'<h3 id="{target}">Why runs are not VALID</h3>') == 1


def test_every_link_of_the_page_leads_to_a_file(built):
    links = [w.split('"')[0] for w in built.read_text().split('href="')[1:]]
    files = [w for w in links if not w.startswith(("#", "data:"))]
    assert len(files) > 10
    assert [f for f in files if not (built.parent / f).is_file()] == []
    pictures = [w.split(")")[0] for w in built.with_name("report.md").read_text().split("](")[1:]]
    assert [p for p in pictures if not (built.parent / p).is_file()] == []


def test_a_page_explains_the_files_that_it_has_and_no_others(built, folder):
    few = page.build(keep(folder, make_record(events=False)))
    for kind in (".trace.json</b>", ".vtu</b>"):
        assert kind in built.read_text(encoding="utf-8")
        assert kind not in few.read_text(encoding="utf-8")


def test_text_of_users_is_escaped_in_page_and_markdown(built):
    for file in (built, built.with_name("report.md")):
        text = file.read_text()
        assert "<script>alert" not in text
        assert "<i>host" not in text
        assert "&lt;script&gt;alert" in text or "‹script>alert" in text


def test_the_name_of_a_campaign_is_no_html_in_markdown(tmp_path, unrendered):
    folder = tmp_path / "<b>bold"
    (folder / "runs").mkdir(parents=True)
    keep(folder, ONE)
    text = page.build(folder).with_name("report.md").read_text()
    assert text.startswith("# &lt;b>bold\n")


def test_long_tables_are_folded_and_short_ones_are_not(built):
    text = built.read_text()
    phases = text[text.index("Every phase") :]
    assert phases.index("<details") < phases.index("<table")
    cases = text[text.index(">Cases</h3>") :]
    assert cases.index("<table") < cases.index("<details")


@pytest.mark.row("004:9.1.5a")
def test_one_csv_holds_every_time_ever_measured(built):
    rows = list(csv.DictReader(io.StringIO((built.parent / "exports" / "everything.csv").read_text())))
    mine = [
        r for r in rows if (r["record"], r["phase"], r["rank"], r["kind"]) == (TWO.id, "cg", "1", "timed")
    ]
    assert [float(r["seconds"]) for r in mine] == [s.seconds[1][CG] for s in TWO.sets[1:]]
    assert list(rows[0]) == ["mesh", "storage", "ranks", "label", *writers.MEASURED]  # the others are shared
    assert {r["storage"] for r in rows} == {"csr"}
    total = next(r for r in rows if r["kind"] == "run" and r["record"] == ONE.id)
    assert float(total["seconds"]) == ONE.total[0]


def test_a_trace_has_a_span_for_every_event_on_its_rank(built):
    trace = json.loads((built.parent / "exports" / f"{TWO.id}.trace.json").read_text())["traceEvents"]
    spans = [e for e in trace if e["ph"] == "X"]
    assert len(spans) == len(TWO.events)
    assert spans[0]["name"] == "start-up"
    assert spans[0]["dur"] == pytest.approx(0.3e6)  # microseconds
    assert {e["tid"] for e in spans} == {0, 1}
    assert [e["args"]["name"] for e in trace if e["name"] == "process_name"] == ["node8"]


def test_exported_events_name_partners_and_bytes_of_messages(tmp_path):
    events = (
        Event(0, SEND, 0, 1e-3, 2e-3, (1, 4), (816, 24)),
        Event(0, ALLREDUCE, 0, 2e-3, 3e-3, (), (8,)),
        Event(0, CG, -1, 0.0, 4e-3),
    )
    record = msgspec.structs.replace(TWO, events=events, dropped=(0, 5))
    writers.perfetto(Mock(records=[record]), tmp_path)
    trace = json.loads((tmp_path / f"{TWO.id}.trace.json").read_text())
    assert trace["otherData"] == {"clocks": "one host, one clock: offset 0", "spans dropped": 5}
    assert [e["args"] for e in trace["traceEvents"] if e["ph"] == "X"] == [
        {"iteration": 0, "partners": "1 4", "bytes": [816, 24]},
        {"iteration": 0, "partners": "all", "bytes": [8]},
        {"iteration": -1},
    ]


@pytest.mark.row("004:F2")
def test_vtu_holds_mesh_displacement_stress_and_part(built):
    import meshio

    mesh, part = small_mesh()
    path = built.parent / "exports" / f"{TWO.id}.vtu"
    assert np.array_equal(read(path).x, mesh.x)
    written = meshio.read(path)
    assert np.array_equal(written.cell_data["part"][0], part)
    assert np.array_equal(written.cell_data["von_mises"][0], np.arange(mesh.n_cells))
    assert np.allclose(written.point_data["displacement"], 1e-6 * mesh.x)


def test_only_failures_still_make_a_page(folder):
    index = page.build(keep(folder, make_failure()))
    assert "killed by signal 9" in index.read_text()
    assert "<b>not bold</b>" not in index.read_text()
    assert "&lt;b&gt;not bold&lt;/b&gt;" in index.read_text()
    assert not list((index.parent / "exports").iterdir())


def test_synthetic_heterogeneity_is_on_top_of_the_page(folder):
    text = page.build(
        keep(folder, make_record(ranks=2, environment=environment(2, synthetic="rank 1 x 2")))
    ).read_text()
    assert text.index("SYNTHETIC") < text.index("<nav>")


def test_emulated_runs_beside_real_ones_are_counted_on_top_of_the_page(folder):
    index = page.build(keep(folder, ONE, make_record(ranks=2, environment=environment(2, synthetic="x 2"))))
    for text in (index.read_text(), index.with_name("report.md").read_text()):
        assert ": 1 of 2 runs, shown apart: ranks were slowed on purpose (x 2)" in text


def test_several_emulations_are_one_banner(folder):
    ways = ("rank 1 x 2", "rank 1 x 3")
    made = [
        make_record(ranks=2, run=k, environment=environment(2, synthetic=way)) for k, way in enumerate(ways)
    ]
    text = page.build(keep(folder, *made)).read_text()
    assert text.count('class="banner"') == 1
    assert "(rank 1 x 2; rank 1 x 3)" in text


def test_a_campaign_file_that_is_no_text_is_named(folder):
    keep(folder, ONE)
    (folder / "campaign.toml").write_bytes("name = 'Größe'".encode("latin-1"))
    with pytest.raises(InputError, match=r"cannot read .*campaign\.toml: not a text file"):
        page.build(folder)


@pytest.mark.parametrize("content", [b"PK nonsense", b""])
def test_a_broken_file_of_fields_is_named_and_leaves_nothing_behind(folder, content):
    record = make_record(ranks=2)
    keep(folder, record)
    (folder / "runs" / f"{record.id}.fields.npz").write_bytes(content)
    with pytest.raises(InputError, match=r"fields\.npz: not a file of fields"):
        page.build(folder)
    assert sorted(p.name for p in folder.iterdir()) == ["runs"]


def test_a_second_report_replaces_the_first_whole(folder):
    page.build(keep(folder, *campaign((1, 2), ("m1",))))
    assert (folder / "report" / "plots" / "speedup.svg").is_file()
    for path in (folder / "runs").glob("*P2*"):
        path.unlink()
    page.build(folder)
    assert not (folder / "report" / "plots" / "speedup.svg").exists()
    assert sorted(p.name for p in folder.iterdir()) == ["report", "runs"]


def test_a_folder_with_other_files_is_never_replaced(folder, tmp_path):
    keep(folder, make_record())
    other = tmp_path / "precious"
    other.mkdir()
    (other / "thesis.tex").write_text("years of work")
    with pytest.raises(InputError, match="not a report"):
        page.build(folder, other)
    assert (other / "thesis.tex").is_file()
    empty = tmp_path / "empty"
    empty.mkdir()
    assert page.build(folder, empty) == empty / "index.html"


@pytest.mark.parametrize("words", [[], ["--json"]])
def test_where_no_page_can_be_written_the_tables_come_before_the_one_line(folder, capsys, unrendered, words):
    keep(folder, make_record())
    (folder / "file").touch()
    assert main(["report", str(folder), "--out", str(folder / "file" / "report"), *words]) == 2
    told = capsys.readouterr()
    assert told.err == f"fembench: cannot write {folder}/file/report: {folder}/file is not a folder\n"
    if words:
        assert json.loads(told.out)["report"] is None
    else:
        assert told.out.endswith("\nreport: the page is not written\n")
        assert "\nWhy runs are not VALID\n" in told.out


def test_when_writing_fails_the_earlier_report_stays(folder, monkeypatch):
    page.build(keep(folder, make_record()))
    before = (folder / "report" / "index.html").read_text()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(page, "_write", full)
    with pytest.raises(InputError, match="No space left on device"):
        page.build(folder)
    assert (folder / "report" / "index.html").read_text() == before
    assert sorted(p.name for p in folder.iterdir()) == ["report", "runs"]


def test_sentences_tables_and_plots_are_of_results_that_are_made_once(folder, monkeypatch):
    keep(folder, *campaign((1, 2)))
    makers = {"results.pools": 1, "factors._transfer": 6}
    made = {name: Mock(wraps=resolve_name(f"fembench.report.{name}")) for name in makers}
    for name, maker in made.items():
        monkeypatch.setattr(f"fembench.report.{name}", maker)
    assert main(["report", str(folder)]) == 0
    assert {name: maker.call_count for name, maker in made.items()} == makers


def test_commands_stand_out_in_the_sentences_of_a_page_and_its_date_can_be_read(folder):
    said = ["stop <it> (`top` shows it)"]
    text = page.build(keep(folder, ONE), said=said).read_text()
    assert "<p>stop &lt;it&gt; (<code>top</code> shows it)</p>" in text
    assert "newest 2026-01-02 03:04 UTC<" in text


@pytest.mark.slow
def test_equal_records_give_an_equal_page(tmp_path, not_laid_out):
    (tmp_path / "runs").mkdir()
    keep(tmp_path, ONE)
    assert (
        page.build(tmp_path, tmp_path / "a").read_text() == page.build(tmp_path, tmp_path / "b").read_text()
    )


def test_the_verb_prints_json(folder, output):
    keep(folder, *campaign((1, 2), ("m1",)))
    printed = json.loads(output("report", str(folder), "--json", "--out", str(folder / "elsewhere")))
    assert printed["report"] == str(folder / "elsewhere" / "index.html")
    assert printed["tables"]["speedup_cg"][0]["ranks"] == 2


def test_a_comparison_with_peers_may_lie_elsewhere(folder, tmp_path, output, refusal):
    keep(folder, ONE, TWO)
    path = save_peers(peers_record(), tmp_path)
    assert "petsc jacobi, solve" in output("report", str(folder), "--peers", str(path))
    assert "none.json" in refusal("report", str(folder), "--peers", str(tmp_path / "none.json"))


def test_a_base_that_was_never_run_is_one_line_and_status_two(folder, capsys):
    keep(folder, ONE, TWO)
    assert main(["report", str(folder), "--base", "3"]) == 2
    assert capsys.readouterr().err.endswith("--base 3: no run on 3 ranks; runs are on [1, 2] ranks\n")
    assert main(["report", str(folder), "--base", "-1"]) == 2
    assert not (folder / "report").exists()


@pytest.mark.parametrize("what", ["absent", "empty", "garbage", "a file"])
def test_a_folder_without_records_is_one_line_and_status_two(tmp_path, refusal, what):
    target = tmp_path / "target"
    if what in ("empty", "garbage"):
        (target / "runs").mkdir(parents=True)
    if what == "garbage":
        (target / "runs" / "x.json").write_text('{"schema": 1, "id"')
    if what == "a file":
        target.write_text("")
    assert str(target) in refusal("report", str(target))
    assert not (target / "report").exists()


def test_one_thing_has_one_spelling_in_headings_and_captions(built):
    text = built.with_name("report.md").read_text()
    headings = {line for line in text.splitlines() if line.startswith("### ")}
    assert len({heading.lower() for heading in headings}) == len(headings)
    captions = [line for line in text.splitlines() if not line.startswith(("|", "- "))]
    assert not [line for line in captions if re.search(r"\d,\d{3}\b", line)]
