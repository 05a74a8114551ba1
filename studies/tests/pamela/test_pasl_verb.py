"""fembench study pasl, from the file to the interval."""

import json

import pytest
from thesis_000 import DATA, machine_text, sends_text

from fembench.cli.main import main

PI = [str(DATA / "seed000_pi.pas"), "--source", str(DATA / "seed000_pi.py"), "--free", "random"]


@pytest.mark.row("000:R6")
def test_the_steps_are_shown(output):
    out = output("study", "pasl", str(DATA / "seed000_fig_4_5.pas"), "--trace")
    assert out.rstrip().endswith("L = 𝔹1;(𝔹2‖(𝔹3;(𝔹4‖𝔹5)));𝔹6")
    assert "L = 𝔹1;((𝔹2;𝔹6)‖(𝔹3;(𝔹4‖𝔹5);𝔹6))" in out


@pytest.mark.row("000:F27")
def test_from_source_to_the_interval(tmp_path, capsys, output):
    sends = "".join(f"\ninter_send[{p}][0](64)=[0.008;0.017]" for p in (1, 9, 10, 20, 21, 32))
    (tmp_path / "park.txt").write_text(machine_text() + sends)
    more = ["--machines", str(tmp_path / "park.txt"), "-P", "2", "--loops", "listing"]
    found = json.loads(output("study", "pasl", *PI, *more, "--same", "compare=loop_iteration", "--json"))
    # fifty tasks on each of machines 1 and 9
    assert found["terms"]["T_comp_2"] == pytest.approx([50 * 5.195, 50 * 5.209], rel=1e-3)
    assert found["bottleneck"] == "T_comp_2"
    assert (
        main(["study", "pasl", *PI, *more, "--same", "compare=loop_iteration", "--like", "1", "-P", "4"]) == 0
    )
    assert "T on 4 machines" in capsys.readouterr().out


@pytest.mark.row("000:F13a")
@pytest.mark.parametrize(
    ("unit", "bottleneck", "expected"),
    [
        ("ms", "T_comp_4", [25 * 17.303, 25 * 17.452]),
        ("s", "T_net", [4 * 7.5 + 50 * 30, 4 * 15 + 50 * 60]),  # more than the whole program took
    ],
)
def test_appendix_b_as_printed_is_sensible_in_milliseconds(tmp_path, capsys, unit, bottleneck, expected):
    """25 tasks on each of machines 1, 9, 10 and 20; messages of 8 to 17, 8 to 20, 7 to 12 and 7 to 11."""
    (tmp_path / "park.txt").write_text(machine_text() + sends_text())
    park = ["--machines", str(tmp_path / "park.txt"), "--send-unit", unit, "-P", "4", "--json"]
    assert main(["study", "pasl", *PI, *park, "--same", "compare=loop_iteration", "--loops", "listing"]) == 0
    told = capsys.readouterr()
    found = json.loads(told.out)
    assert ("is the unit of the messages in the machine model ms? Then give --send-unit ms" in told.err) == (
        unit == "s"
    )
    assert found["bottleneck"] == bottleneck
    assert found["terms"][bottleneck] == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# A page\n\n" + "of many words\n" * 25, "line 1: cannot read '# A page of many words"),
        ('path = "x";\nB1 = "A.class"; // first\n\n  T1 = C1(1);\n', "line 4: cannot read 'T1 = C1(1)'"),
        ('path = "x";\n%%\nT1 << NULL;\n', "line 3: cannot read 'T1 << NULL'"),
    ],
)
def test_what_is_no_pasl_is_told_in_one_line_with_its_place(tmp_path, refusal, text, message):
    (tmp_path / "x.pas").write_text(text)
    told = refusal("study", "pasl", str(tmp_path / "x.pas"))
    assert message in told
    assert 'expected T2 = B2(100) << T1; or B2 = "Name.class";' in told
    assert len(told.replace(str(tmp_path), "")) < 200


def test_machines_without_source_are_refused(refusal):
    assert "the costs of tasks are unknown" in refusal("study", "pasl", PI[0], "--machines", "x")


def test_a_graph_that_is_not_series_parallel_is_said_to_be_none(tmp_path, output):
    codes = "".join(f'B{k} = "C{k}.class"; ' for k in range(1, 7))
    links = "T1=B1(1)<<NULL; T2=B2(1)<<T1; T3=B3(1)<<T1; T4=B4(1)<<T2,T3; T5=B5(1)<<T3; T6=B6(1)<<T4,T5;"
    (tmp_path / "crossed.pas").write_text(f'path = "x"; {codes} %% {links}')
    text = output("study", "pasl", str(tmp_path / "crossed.pas"))
    assert "Not series-parallel: B4 repeated" in text
    assert "L = 𝔹1;(𝔹2‖𝔹3);(𝔹4‖𝔹5);𝔹6" in text


def test_a_pamela_model_as_printed_gives_the_times_of_its_tasks(tmp_path, output):
    (tmp_path / "park.txt").write_text(machine_text() + sends_text())
    words = ["--tasks", "1=100", "--send-unit", "ms", "--same", "compare=loop_iteration", "--json"]
    free = [f"--free={name}" for name in ("assign_obj", "assign_long", "sum_long")]
    park = ["--machines", str(tmp_path / "park.txt"), "-P", "2"]
    found = json.loads(output("study", "pasl", str(DATA / "seed000_pi.pam"), *park, *words, *free))
    # fifty tasks on machines 1 and 9, and up to 20 ms for each of 202 messages
    assert found["terms"]["T_comp_2"] == pytest.approx([50 * 5.195, 50 * 5.209], rel=1e-3)
    assert found["terms"]["T_net"] == pytest.approx([202 * 8e-3, 101 * 37e-3], rel=1e-3)


def test_several_numbers_of_machines_are_compared(tmp_path, capsys):
    (tmp_path / "park.txt").write_text(machine_text() + sends_text())
    park = ["--machines", str(tmp_path / "park.txt"), "--like", "1", "-P", "1,2,4", "--send-unit", "us"]
    assert main(["study", "pasl", *PI, *park, "--same", "compare=loop_iteration"]) == 0
    lines = [line.split("|")[1:] for line in capsys.readouterr().out.splitlines() if "T_comp" in line]
    rows = [[cell.strip() for cell in line] for line in lines if len(line) > 6]
    assert [(row[0], row[3], row[4]) for row in rows] == [
        ("1", "1.00", "100 %"),
        ("2", "2.00", "100 %"),
        ("4", "4.00", "100 %"),
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [(["-P", "2,x"], "-P 2,x: expected numbers"), (["-P", "-1"], "expected"), (["--tasks", "x"], "BATCH=N")],
)
def test_numbers_that_are_none_are_named(words, message, refusal):
    park = ["--machines", str(DATA / "seed000_pi.pas")]
    assert message in refusal("study", "pasl", str(DATA / "seed000_pi.pam"), *park, *words)
