"""Plots: well-formed, complete where there is data, absent where there is none."""

import dataclasses
import itertools
import re
import xml.etree.ElementTree as xml

import msgspec
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from planted_environment import on_hosts_with
from planted_records import lasting, nested
from report_sample import HOST, campaign, environment, make_record, rows_of

from fembench.base.units import digits, seconds
from fembench.records import phases as ph
from fembench.records.record import ClockOffset
from fembench.records.times import Times
from fembench.report import page
from fembench.report.factors import every_factor
from fembench.report.measures import mean_times
from fembench.report.plots import bars, canvas, gantt, lines
from fembench.report.plots.gallery import gallery
from fembench.report.results import results
from fembench.report.roofline import roofline_points
from fembench.report.tables import CampaignResults

replace = msgspec.structs.replace


def words(plot):
    """Every text of an SVG; the file must be well-formed XML."""
    root = xml.fromstring(plot.svg)
    return [" ".join("".join(t.itertext()).split()) for t in root.iter("{http://www.w3.org/2000/svg}text")]


def colours_named(caption):
    """Colours that a caption names; the longest name first, so that 'light blue' is not 'blue'."""
    found = []
    for colour, name in sorted(canvas.NAMED.items(), key=lambda item: -len(item[1])):
        if re.search(rf"\b{name}\b", caption):
            found.append(colour.lower())
            caption = caption.replace(name, "")
    return found


@pytest.mark.slow
def test_a_campaign_gives_every_plot_with_text_as_text(not_laid_out):
    found = gallery(results(campaign()))
    names = [p.name for p in found]
    of_times = ["phases", "set_up", "speedup", "speedup_factors", "weak", "communication", "ranks"]
    of_times += ["roofline", "time_line-2", "time_line-4"]
    assert names == [*of_times, "residuals"]
    for plot in found:
        assert words(plot), plot.name
        assert plot.svg.startswith("<svg role=")
        assert plot.caption.endswith(".")
        assert re.search(r"\d.*\.$", plot.finding), plot.name
        assert "<title>" in plot.svg, plot.name
        assert [c for c in colours_named(plot.caption) if c not in plot.svg.lower()] == [], plot.name
    assert any("ms" in words(p) for p in found)
    assert "wait (dark orange)" in found[0].caption


def test_phases_have_one_panel_a_mesh_and_one_figure_a_method():
    records = campaign() + campaign(storage="dense", meshes=("m1",))
    first, before, second, _ = bars.phases(results(records))
    sizes = {"m1": "630 equations", "m2": "2 592 equations", "m3": "5 460 equations"}
    found = [w for w in words(first) if "equations" in w or w in sizes]
    assert found == [word for panel in sizes.items() for word in panel]
    assert [w for w in words(second) if "equations" in w] == ["630 equations"]
    assert (first.name, before.name, second.name) == ("phases", "set_up", "phases-2")
    assert {"assembly", "product"} <= set(words(first))
    assert {"partition", "distribute"} <= set(words(before)) - set(words(first))


def test_the_number_above_a_set_is_that_of_the_tables_and_that_of_a_set_up_the_sum_of_its_bands():
    record = make_record("m1", 2, noise=0.0)
    plot, before = bars.phases(results([record]))
    one = mean_times([Times(record)])
    whole = digits(1e3 * sum(one.get(name, 0.0) for _, names, _ in bars.SET_UP for name in names))
    assert whole in words(before)
    assert f"ranks 2\nsum: {whole} ms\n" in before.svg  # under the pointer
    assert "Bands are means over ranks. " in plot.caption


def test_the_caption_of_a_set_says_how_far_its_bands_are_from_the_number_above_them():
    """Each part is longer in another set: the whole is longer in four of five, but the median of no part."""
    record = make_record("m1", noise=0.0)
    sets, whole = list(record.sets), record.sets[1].seconds[0][ph.ASSEMBLY] + record.sets[1].seconds[0][ph.CG]
    for k, phase in enumerate((ph.ASSEMBLY, ph.SPMV_INTERIOR, ph.DOT, ph.AXPY), 1):
        longer = np.zeros(len(ph.NAMES))
        longer[[phase] if phase == ph.ASSEMBLY else [phase, ph.CG]] = 0.4 * whole
        sets[k] = replace(sets[k], seconds=nested(sets[k].seconds + longer))
    record = replace(record, sets=tuple(sets))
    (took,) = (r["median_s"] for r in rows_of([record], "phases") if r["phase"] == "assembly + cg")
    assert took == pytest.approx(1.4 * whole)
    plot = bars.phases(results([record]))[0]
    assert digits(1e3 * took) in words(plot)
    assert f"ranks 1\nwhole: {digits(1e3 * took)} ms\n" in plot.svg
    assert " medians of their own, which add up to it only within 29 %. " in plot.caption


def test_waiting_of_the_sentence_on_a_set_is_that_of_the_headline_for_neighbours_and_in_all_reduces():
    record = make_record("m1", 4, noise=0.0, skew=0.0)
    rows = np.array(record.sets[0].seconds)
    rows[:, [ph.WAIT, ph.ALLREDUCE]] = 0.8 * rows[:, [ph.SPMV_INTERIOR]]
    rows[:, ph.CG] = rows[:, list(ph.CG_PARTS)].sum(axis=1)
    record = replace(record, sets=tuple(replace(s, seconds=nested(rows)) for s in record.sets))
    part = 2 * rows[0, ph.WAIT] / (rows[0, ph.ASSEMBLY] + rows[0, ph.CG])
    said = f"; {100 * part:.0f} % of the bar is waiting (wait and all-reduce)."
    assert bars.phases(results([record]))[0].finding.endswith(said)


def test_the_sentence_on_a_set_has_the_time_of_the_tables_which_is_that_of_the_slowest_rank():
    record = make_record("m1", 2, noise=0.0)
    rows = np.array(record.sets[0].seconds)
    rows[1, ph.ASSEMBLY] += 0.5
    record = replace(record, sets=tuple(replace(one, seconds=nested(rows)) for one in record.sets))
    (row,) = rows_of([record], "summary")
    found = bars.phases(results([record]))[0].finding
    assert found.startswith(f"On m1, a set takes {seconds(row['assembly_s'] + row['cg_s'])} on 2 ranks; ")
    assert found.endswith(" of the bar is assembly.")
    both = bars.phases(results([make_record("m1"), record]))[0].finding
    assert both.endswith(" of the latter is assembly.")


def test_of_several_shares_the_sentence_on_a_set_names_the_fastest_as_the_headline_does():
    equal, best, last = (
        lasting(make_record("m1", 2, noise=0.0, **shares), factor)
        for shares, factor in (({}, 1.0), ({"shares": "2:1"}, 1.5), ({"shares": "3:1"}, 2.0))
    )

    def said(*records):
        return [re.findall(r" on ([^;]*?)(?: and |; )", p.finding) for p in bars.phases(results(records))]

    assert said(equal, best, last) == [["2 ranks", "2 ranks (2:1)"]] * 2
    assert said(make_record("m1", noise=0.0), equal, best) == [["one rank", "2 ranks"]] * 2
    loud = on_hosts_with(best, others_percent=40.0)
    assert said(equal, loud, last)[0] == ["2 ranks", "2 ranks (3:1)"]


def test_a_preconditioner_with_a_phase_of_its_own_has_a_band_of_its_own_and_is_named():
    record = make_record("m1", 2)
    longer = np.zeros(len(ph.NAMES))
    longer[[ph.CG, ph.PRECOND]] = 0.5
    sets = [replace(s, seconds=nested(s.seconds + longer)) for s in record.sets]
    cycle = replace(record, sets=tuple(sets), case=record.case.with_(precond="multigrid"))
    for one, named in ((record, False), (cycle, True)):
        for plot in (bars.phases(results([one]))[0], bars.rank_by_rank(results([one]))):
            assert ("preconditioner" in words(plot)) is named
            assert (canvas.BROWN.lower() in plot.svg.lower()) is named
    assert "vectors (light blue), preconditioner (brown)" in bars.phases(results([cycle]))[0].caption


def test_one_record_gives_only_what_one_rank_can_show():
    assert [p.name for p in gallery(results([make_record()]))] == [
        "phases",
        "set_up",
        "roofline",
        "residuals",
    ]


@pytest.mark.parametrize(
    ("draw", "records"),
    [
        (lines.speedups, lambda: campaign((2,))),  # no base
        (gantt.time_lines, lambda: [make_record(ranks=2, events=False)]),
    ],
)
def test_what_there_are_no_numbers_for_is_not_drawn(draw, records):
    assert not draw(results(records()))


def test_product_and_vectors_are_told_apart_in_the_dark():
    dark = page.render("page.css", CampaignResults("", [], [], {}, ""), [], []).split("dark) {")[1]
    blue, paper = (to_rgb(re.search(rf"--{name}: (#\w+)", dark)[1]) for name in ("blue", "paper"))

    def light(rgb):
        linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in rgb]
        return 0.05 + float(np.dot(linear, (0.2126, 0.7152, 0.0722)))

    assert light(to_rgb(canvas.SKY)) / light(blue) > 2
    assert light(blue) / light(paper) > 3


def test_the_sentence_of_a_plot_names_the_extreme_that_was_measured(unrendered):
    found = {p.name: p.finding for p in gallery(results(campaign(noise=0.0)))}
    largest = r"The largest speedup is 2\.\d\d, of m3 · csr on 4 ranks, an efficiency of 0\.\d\d\."
    assert re.fullmatch(largest, found["speedup"])
    ends = r"Communication takes \S+ % \(m\d · csr on 2 ranks\) to \S+ % \(m1 · csr on 4 ranks\) of CG\."
    assert re.fullmatch(ends, found["communication"])
    assert found["ranks"].startswith("Rank 3 computes longest: ")
    assert " Rank 0 waits longest, for neighbours and in all-reduces: " in found["ranks"]
    assert found["residuals"] == "m3 takes 428 iterations on one rank and 428 on 4 ranks."
    (fixed,) = [p for p in gallery(results([make_record("m3", iterations=428)])) if p.name == "residuals"]
    assert fixed.finding == "After 428 iterations, the residual of m3 is 2e-09 of the first."


def test_the_caption_of_residuals_says_at_what_cg_stops_in_these_runs():
    solved, fixed = make_record("m1"), make_record("m2", iterations=328)
    solved = replace(solved, solve=replace(solved.solve, target=1e-6))
    fixed = replace(fixed, solve=replace(fixed.solve, target=0.0))
    captions = [lines.residuals(results(runs)).caption for runs in ([solved], [fixed], [solved, fixed])]
    assert [(lines.DASHED in text, lines.FIXED in text) for text in captions] == [
        (True, False),
        (False, True),
        (True, True),
    ]


def test_the_rank_that_computes_longest_does_so_for_as_long_as_its_bars_are_high_without_the_loop():
    record = make_record("m3", 4, noise=0.0)
    rows = np.array(record.sets[-1].seconds)
    computing = rows[:, ph.CG_COMPUTING].sum(axis=1)
    found = bars.rank_by_rank(results([record])).finding
    ratio = computing.max() / computing.mean()
    assert found.startswith(f"Rank 3 computes longest: {seconds(computing[3])} per set, {ratio:.2f} times")
    assert found.endswith(f": {seconds(rows[0, [ph.WAIT, ph.ALLREDUCE]].sum())}.")


def test_the_sentence_on_ranks_has_the_seconds_of_its_bars_also_where_parts_are_long_in_different_sets():
    record = make_record("m3", 2, noise=0.0, skew=0.1)
    sets = list(record.sets)
    for k, phase in enumerate((ph.SPMV_INTERIOR, ph.DOT, ph.AXPY), 1):
        rows = np.array(sets[k].seconds)
        rows[1, [phase, ph.CG]] += rows[1, ph.CG]
        sets[k] = replace(sets[k], seconds=nested(rows))
    middle = np.median([one.seconds for one in sets[1:]], axis=0)
    bar = middle[:, ph.CG_COMPUTING].sum(axis=1)
    found = rank_by_rank_of(replace(record, sets=tuple(sets)))[0]
    ratio = bar[1] / bar.mean()
    assert found.startswith(f"Rank 1 computes longest: {seconds(bar[1])} per set, {ratio:.2f} times the mean")


def test_no_rank_is_said_to_compute_longest_where_all_compute_about_equally_long():
    work = {skew: rank_by_rank_of(make_record("m3", 2, noise=0.0, skew=skew))[0] for skew in (0.03, 0.1)}
    assert re.match(
        r"All ranks compute about equally long: \S+ ms per set\. Rank 0 waits longest", work[0.03]
    )
    assert work[0.1].startswith("Rank 1 computes longest: ")


def test_bars_are_said_to_be_equally_high_only_where_they_are():
    record = make_record("m3", 2, noise=0.0)
    rows = np.array(record.sets[-1].seconds)
    equal = rank_by_rank_of(record)[1]
    assert "All bars have about the same height" in equal
    rows[1, [ph.CG, ph.SPMV_INTERIOR]] += 0.2 * rows[1, ph.CG]
    unequal = rank_by_rank_of(
        replace(record, sets=tuple(replace(s, seconds=nested(rows)) for s in record.sets))
    )[1]
    low, high = map(seconds, sorted(rows[:, ph.CG]))
    assert "the same height" not in unequal
    assert f" The bars are {low} to {high} high; " in unequal


def rank_by_rank_of(record):
    plot = bars.rank_by_rank(results([record]))
    return plot.finding, plot.caption


def test_plots_of_disturbed_runs_say_so_in_the_sentence_and_in_what_is_drawn(not_laid_out):
    quiet = campaign((1, 2), ("m2", "m3"), noise=0.0)
    found = gallery(results([on_hosts_with(one, others_percent=40.0) for one in quiet]))
    assert {"weak", "ranks", "roofline"} < {plot.name for plot in found}
    for plot in found:
        of_times = plot.name != "residuals"
        assert ("DISTURBED" in plot.finding) is of_times, plot.name
        assert ("DISTURBED" in plot.title or "DISTURBED" in " ".join(words(plot))) is of_times, plot.name


def test_a_sentence_leaves_disturbed_runs_out_while_there_are_others(not_laid_out):
    quiet = campaign((1, 2), ("m3",), noise=0.0)
    loud = on_hosts_with(make_record("m3", 4, noise=0.0), others_percent=40.0)
    found = {p.name: p for p in gallery(results([*quiet, loud]))}
    assert found["speedup"].finding.startswith("The largest speedup is 1.")
    assert " of m3 · csr on 2 ranks, an " in found["speedup"].finding
    for name in ("speedup", "communication", "roofline", "speedup_factors"):
        assert found[name].finding.endswith(" Runs that are DISTURBED do not count."), name
        assert "4 ranks" not in found[name].finding
    assert "4 ranks, DISTURBED; " in found["phases"].finding
    assert found["ranks"].finding.startswith("DISTURBED: rank 3 computes longest")
    for name in ("speedup", "communication", "speedup_factors"):
        assert any("DISTURBED: ranks 4" in text for text in words(found[name])), name
    for name, what in (("phases", "whole"), ("set_up", "sum")):
        assert "4 · DISTURBED" in words(found[name]), name
        assert f"ranks 4 · DISTURBED\n{what}: " in found[name].svg, name
    assert "4 ranks · DISTURBED" in words(found["roofline"])
    assert found["time_line-4"].title.endswith(" · DISTURBED")


def test_sentences_on_provisional_runs_say_so(not_laid_out):
    found = gallery(results(campaign((1, 2), ("m2", "m3"), noise=0.0, status="PROVISIONAL")))
    said = {plot.name: plot.finding for plot in found}
    assert " of m3 · csr on 2 ranks, PROVISIONAL, an efficiency of " in said["speedup"]
    assert re.search(r" on one rank, PROVISIONAL, and \S+ ms on 2 ranks, PROVISIONAL; ", said["phases"])
    assert re.match("PROVISIONAL: (rank 1|all ranks) ", said["ranks"])
    assert said["time_line-2"].startswith("PROVISIONAL: in these iterations, ")
    assert {name for name, text in said.items() if "PROVISIONAL" not in text} == {"residuals"}


def test_the_first_plot_of_a_set_is_of_real_hosts_if_there_are_any(not_laid_out):
    slowed = [make_record("m1", n, environment=environment(n, synthetic="emulated")) for n in (1, 2)]
    titles = {p.name: p.title for p in gallery(results([*slowed, *campaign((1, 2), ("m2",))]))}
    assert "SYNTHETIC" not in titles["phases"]
    assert "SYNTHETIC" in titles["phases-2"]


@pytest.mark.parametrize("panels", [1, 2, 3])
@pytest.mark.parametrize("n", [2, 3, 4])
def test_the_marks_of_neighbouring_bars_are_not_printed_over_each_other(panels, n):
    names = [f"{2**k} · DISTURBED" for k in range(n)]
    with canvas.figure(panels, width=min(canvas.WIDTH, 3.0 + 3.0 * panels)) as (drawn, axes_of):
        for axes in axes_of:
            axes.set_ylabel("ms")
            canvas.categories(axes, names, "ranks")
        drawn.get_layout_engine().execute(drawn)
        for axes in axes_of:
            labels = axes.get_xticklabels()
            boxes = [label.get_window_extent() for label in labels]
            assert labels[0].get_rotation() or all(a.x1 < b.x0 for a, b in itertools.pairwise(boxes))


def test_a_speedup_over_a_disturbed_base_is_disturbed():
    base, two, four = campaign(meshes=("m3",), noise=0.0)
    plot = lines.speedups(results([on_hosts_with(base, others_percent=40.0), two, four]))
    assert re.search(r"on 4 ranks, DISTURBED, an efficiency of \S+\.$", plot.finding)
    assert "m3 · DISTURBED: ranks 2, 4" in words(plot)


def test_factors_are_broken_lines_and_their_products_full_ones_as_the_caption_says():
    full = [label for label, (_, look) in lines.FACTORS.items() if "linestyle" not in look]
    assert full == ["global", "parallel"]
    found = results(campaign((1, 2), ("m3",)))
    assert "The lowest factor (broken lines) " in lines.factors(every_factor(found)).caption


def test_title_and_sentence_of_the_factors_say_of_which_time_they_are():
    found = every_factor(results(campaign((1, 2), ("m3",))))
    plot = lines.factors(found)
    assert plot.title == "Efficiency factors of assembly + cg against ranks"
    assert re.search(r", the global efficiency of assembly \+ cg is \S+; the lowest factor is ", plot.finding)
    unknown = lines.factors([dataclasses.replace(one, scaling=np.nan) for one in found])
    assert " on 2 ranks, the lowest factor of assembly + cg is " in unknown.finding


def test_a_speedup_below_one_can_be_read_on_an_axis_that_says_it_is_logarithmic():
    one, two = campaign((1, 2), ("m3",), noise=0.0)
    found = words(lines.speedups(results([one, lasting(two, 2.5)])))
    assert {"0.7", "1", "1.5", "2"} <= set(found)
    assert "speedup of CG, T(1) / T(P), log scale" in found


def test_error_bars_of_several_curves_stand_beside_each_other(monkeypatch):
    places, draw = [], canvas.curve_with_bars

    def kept(axes, x, *ends, **look):
        places.append(x[-1])
        draw(axes, x, *ends, **look)

    monkeypatch.setattr(canvas, "curve_with_bars", kept)
    lines.communication(results(campaign((2, 4))))
    assert len(set(places)) == len(places) == 3
    assert places == pytest.approx([4] * 3, rel=0.05)


def test_a_long_name_under_a_bar_keeps_the_word_that_its_numbers_need():
    with canvas.figure(1) as (_, (axes,)):
        names = ["16 · 200,15*1 · rcb · DISTURBED", "a-name-of-more-than-twenty-four"]
        canvas.categories(axes, names, "ranks")
        labels = [label.get_text() for label in axes.get_xticklabels()]
    assert labels == ["16 · 200,15*1 · rcb ·\nDISTURBED", "a-name-of-more-than-twe…"]


def test_a_title_that_is_wider_than_its_panel_is_broken_between_its_parts():
    with canvas.figure(3) as (_, (first, second, third)):
        canvas.title(first, "box:1000000 #9be9e6 · sym · on gpu,15*cpu")
        canvas.title(second, "m · sym · block-jacobi\n198 900 equations")
        canvas.title(third, "a-mesh-with-a-name-wider-than-a-panel · csr")
        titles = [axes.get_title(loc="left") for axes in (first, second, third)]
    assert titles == [
        "box:1000000 #9be9e6 ·\nsym · on gpu,15*cpu",
        "m · sym · block-jacobi\n198 900 equations",
        "a-mesh-with-a-name-wider-than-a-panel ·\ncsr",
    ]


def test_a_page_may_replace_the_colours_of_axes_and_text_and_a_file_keeps_them():
    (plot, _) = bars.phases(results([make_record()]))
    assert "var(" not in plot.svg
    page = canvas.themed(plot.svg)
    assert set(re.findall(r"var\(--(\w+), #[0-9a-f]{6}\)", page)) >= {"ink", "paper", "grid", "axis"}
    assert re.sub(r"var\(--\w+, (#\w+)\)", r"\1", page) == plot.svg


def test_a_text_under_the_pointer_may_hold_any_character():
    with canvas.figure(1) as (drawn, (axes,)):
        canvas.column_tip(axes, 0.5, 0.2, 'a < b & "c"')
        svg = canvas.plot(drawn, "one", "title", "caption").svg
    titles = [t.text for t in xml.fromstring(svg).iter("{http://www.w3.org/2000/svg}title")]
    assert titles == ["a < b & 'c'"]


def test_a_speedup_plot_says_what_its_base_is():
    (one,), (two,) = ([p for p in (lines.speedups(results(campaign(r))),) if p] for r in ((1, 2), (2, 4)))
    assert any("T(1) / T(P)" in w and "P0" not in w for w in words(one))
    assert any("P0 T(P0) / T(P)" in w for w in words(two))


def test_a_time_line_numbers_iterations_and_leaves_the_warm_ups_out():
    (plot,) = gantt.time_lines(results([make_record(ranks=2)]))
    texts = words(plot)
    assert {"1", "2", "3"} <= set(texts)
    assert {"assembly", "wait", "all-reduce", "partition"} <= set(texts)
    times = [float(t) for t in texts if re.fullmatch(r"\d+\.?\d*", t)]
    assert max(times) < 500  # the half second of warm-ups of the sample is cut out


def test_a_time_line_of_cg_alone_has_one_panel():
    record = make_record(ranks=2)
    record = replace(record, events=tuple(e for e in record.events if e.iteration >= 0))
    (plot,) = gantt.time_lines(results([record]))
    assert "assembly" not in words(plot)


def test_a_time_line_says_how_well_clocks_agree_and_what_was_dropped():
    record = make_record(ranks=2)
    assert "one host, one clock: offset 0" in gantt.time_lines(results([record]))[0].caption
    hosts = environment(2, hosts=(HOST, replace(HOST, name="node00")))
    offsets = tuple(
        ClockOffset(host=k, before=0.0, after=0.0, uncertainty=7e-6 * k, drift=0.0) for k in (0, 1)
    )
    apart = replace(record, environment=hosts, offsets=offsets, dropped=(3, 4))
    caption = gantt.time_lines(results([apart]))[0].caption
    assert "clocks of 2 hosts aligned by ping-pong within 7 µs" in caption
    assert "7 spans dropped" in caption


def test_time_lines_and_roofline_say_which_cases_are_not_drawn():
    many = results(campaign((2, 3, 4, 5, 6), ("m1", "m2")))
    drawn = " Of 10 traced cases, one on the smallest mesh is drawn per number of ranks: 2, 3, 6."
    assert [plot.caption.endswith(drawn) for plot in gantt.time_lines(many)] == [True] * 3
    assert gantt.roofline(roofline_points(many)).caption.endswith(
        " Not drawn: m1 · csr (ranks 4), m2 · csr (ranks 4)."
    )
    meshes = [one for storage in ("csr", "sym") for one in campaign((1,), storage=storage)]
    bare = replace(meshes[-1], solve=replace(meshes[-1].solve, bandwidth=()))
    caption = gantt.roofline(roofline_points(results([*meshes[:-1], bare]))).caption
    assert caption.endswith(" Not drawn: m1 · csr, m3 · sym.")
    one = results([make_record(ranks=2)])
    assert "traced cases" not in gantt.time_lines(one)[0].caption
    assert "Not drawn" not in gantt.roofline(roofline_points(one)).caption


def test_a_hundred_ranks_are_drawn_as_sixty_four_rows():
    (plot,) = gantt.time_lines(results([make_record("m3", 100)]))
    assert "64 of 100 ranks" in plot.caption
    assert len(plot.svg) < 1_000_000


def test_many_ranks_keep_their_ticks_apart():
    plot = bars.rank_by_rank(results([make_record("m3", 64)]))
    ticks = [w for w in words(plot) if w.isdigit()]
    assert len(ticks) < 40


def test_a_rank_that_never_waits_is_a_bar_without_red():
    record = make_record(ranks=2)
    seconds = np.array(record.sets[0].seconds)
    seconds[:, ph.WAIT] = 0
    sets = tuple(replace(s, seconds=nested(seconds)) for s in record.sets)
    assert bars.rank_by_rank(results([replace(record, sets=sets)])) is not None


def test_labels_with_markup_and_dollars_stay_text(not_laid_out):
    nasty = "<b>$x$</b> & co"
    records = [make_record(ranks=2, label=nasty), make_record(ranks=2), make_record()]
    found = gallery(results(records))
    assert any(nasty in w for p in found for w in words(p))
    assert not any("<b>" in p.svg for p in found)


def test_invalid_runs_are_left_out_of_plots_of_times():
    names = [p.name for p in gallery(results([make_record(ranks=2, status="INVALID")]))]
    assert names == ["residuals"]


def test_the_same_drawing_under_two_names_shares_no_identifier_that_is_referred_to():
    with canvas.figure(1) as (drawn, (axes,)):
        axes.plot([0, 1], [0, 1], "o-")
        plots = [canvas.plot(drawn, name, "title", "caption") for name in ("one", "two")]
    used = [
        set(re.findall(r"(?:#|url\(#)([\w.]+)", p.svg)) & set(re.findall(r'id="([^"]+)"', p.svg))
        for p in plots
    ]
    assert used[0]
    assert not used[0] & used[1]


@pytest.mark.parametrize(
    ("ranks", "named"),
    [
        (range(1, 10), [*range(1, 10)]),
        ((1, 2, 3, 4, 6, 8, 12, 16, 24, 32), [1, 2, 4, 8, 16, 32]),
        (range(20, 31), [20, 22, 24, 26, 28, 30]),
    ],
)
def test_an_axis_of_many_ranks_names_powers_of_two(ranks, named):
    with canvas.figure(1) as (_, (axes,)):
        canvas.rank_axis(axes, [*ranks, *ranks])
        assert list(axes.get_xticks()) == named


def test_a_plot_is_drawn_once(monkeypatch):
    """With an engine of layouts, matplotlib would draw it once more, for the layout alone."""
    drawn, draw = [], canvas.Figure.draw
    monkeypatch.setattr(canvas.Figure, "draw", lambda figure, to: (drawn.append(figure), draw(figure, to)))
    plots = gallery(results(campaign((1, 2), ("m1",))))
    assert len(drawn) == len(plots) > 5
