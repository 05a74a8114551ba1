"""Acceptance A4 of thesis-000: PASL, and the steps of Fig. 4.12."""

import pytest
from thesis_000 import DATA

from fembench.base.errors import InputError
from fembench.model.closed_form import TimeRange
from fembench_studies.pamela import pamela, pamela_text, pasl
from fembench_studies.pamela.bounds import Setting, predict
from fembench_studies.pamela.build import build, steps
from fembench_studies.pamela.farm_answer import expanded
from fembench_studies.pamela.machine_model import MachineModel
from fembench_studies.pamela.pamela import Operation
from fembench_studies.pamela.terms import bound_terms

FIG_4_12 = """L = 𝕃1
𝕃1 = 𝔹1;(𝕃2‖𝕃3)
𝕃2 = 𝔹2;𝕃6
𝕃3 = 𝔹3;(𝕃4‖𝕃5)
𝕃4 = 𝔹4;𝕃6
𝕃5 = 𝔹5;𝕃6
𝕃6 = 𝔹6
L = 𝔹1;(𝕃2‖𝕃3)
L = 𝔹1;((𝔹2;𝕃6)‖𝕃3)
L = 𝔹1;((𝔹2;𝕃6)‖(𝔹3;(𝕃4‖𝕃5)))
L = 𝔹1;((𝔹2;𝕃6)‖(𝔹3;((𝔹4;𝕃6)‖𝕃5)))
L = 𝔹1;((𝔹2;𝕃6)‖(𝔹3;((𝔹4;𝕃6)‖(𝔹5;𝕃6))))
L = 𝔹1;((𝔹2;𝔹6)‖(𝔹3;((𝔹4;𝔹6)‖(𝔹5;𝔹6))))
L = 𝔹1;((𝔹2;𝔹6)‖(𝔹3;(𝔹4‖𝔹5);𝔹6))
L = 𝔹1;(𝔹2‖(𝔹3;(𝔹4‖𝔹5)));𝔹6"""


def graph():
    return pasl.load(str(DATA / "seed000_fig_4_5.pas"))


def parsed(*links):
    codes = "".join(f'B{k} = "C{k}";' for k in range(1, 7))
    return pasl.parse(f"{codes} %% {';'.join(links)};")


@pytest.mark.row("000:F2")
def test_the_graph_of_the_figure():
    batches = graph().batches
    assert [(b.cardinality, b.inputs, b.code) for b in batches] == [
        (1, (), "C1"),
        (4, (1,), "C2"),
        (4, (1,), "C3"),
        (1, (3,), "C4"),
        (1, (3,), "C5"),
        (1, (2, 4, 5), "C6"),
    ]
    assert batches[5].output == "result.dat"


@pytest.mark.row("000:F14b")
def test_the_expanded_graph_has_every_task_and_link_of_the_figure():
    """Fig. 4.7: batches of 1, 4, 4, 1, 1 and 1 tasks."""
    first, *lines, last = expanded(graph()).splitlines()
    assert (first, last) == ("digraph tasks {", "}")
    links = {tuple(line.strip(" ;").split(" -> ")) for line in lines if "->" in line}
    fork = {("tk1_1", f"tk{b}_{k}") for b in (2, 3) for k in range(1, 5)}
    join = {(f"tk3_{k}", f"tk{b}_1") for b in (4, 5) for k in range(1, 5)}
    end = {(f"tk2_{k}", "tk6_1") for k in range(1, 5)} | {("tk4_1", "tk6_1"), ("tk5_1", "tk6_1")}
    assert links == fork | join | end
    assert len(lines) - len(links) == 12
    many = pasl.parse(
        'B1="A";B2="B";B3="C";B4="D"; %% T1=B1(1)<<NULL; T2=B2(200)<<T1; T3=B3(200)<<T2; T4=B4(1)<<T3;'
    )
    with pytest.raises(InputError, match="40400 links between tasks"):
        expanded(many)


@pytest.mark.row("000:F4/F14")
def test_every_line_of_the_figure():
    assert steps(graph())[0] == FIG_4_12.splitlines()


def test_a_branch_without_batches_of_its_own_vanishes():
    short = parsed("T1=B1(1)<<NULL", "T2=B2(3)<<T1", "T3=B3(1)<<T1,T2")
    assert steps(short)[0][-1] == "L = 𝔹1;𝔹2;𝔹3"


CROSSED = (
    "T1=B1(1)<<NULL", "T2=B2(1)<<T1", "T3=B3(1)<<T1", "T4=B4(1)<<T2,T3", "T5=B5(1)<<T3", "T6=B6(1)<<T4,T5"
)  # fmt: skip


def test_its_critical_path_is_exact_and_every_batch_is_asked_of_resources_once():
    crossed = parsed(*CROSSED)
    seconds = {1: (1, 1), 2: (5, 5), 3: (1, 4), 4: (1, 1), 5: (4, 9), 6: (1, 1)}  # low, high
    bodies = {f"C{k}": Operation(f"op_{k}") for k in seconds}
    model = build(crossed, bodies, {})
    machine = MachineModel({0: {f"op_{k}": TimeRange(*ends) for k, ends in seconds.items()}})
    found = predict(Setting(model, machine, 1))
    paths = [(1, 2, 4, 6), (1, 3, 4, 6), (1, 3, 5, 6)]
    longest = [max(sum(seconds[k][side] for k in path) for path in paths) for side in (0, 1)]
    assert longest == [8, 15]  # by way of 2 where all are quick, of 5 where all are slow
    assert (found.terms["T_0"].low, found.terms["T_0"].high) == (8, 15)
    total = [sum(ends[side] for ends in seconds.values()) for side in (0, 1)]
    assert (found.terms["T_COORD"].low, found.terms["T_COORD"].high) == tuple(total)
    assert "L_path" in pamela.as_text(model)
    assert (
        predict(Setting(pamela_text.parse(pamela.as_text(model), "again"), machine, 1)).terms == found.terms
    )


LEVELS = """L=L_1;(L_2||L_3);(L_4||L_5);L_6
L_path=L_1;((L_2;L_4)||(L_3;(L_4||L_5)));L_6
L_1={ use(r1,1); }
L_2={ use(r2,5); }
L_3={ use(r3,1); }
L_4={ use(r4,1); }
L_5={ use(r5,6); }
L_6={ use(r6,1); }
"""


def test_by_phase_its_time_lies_between_the_path_and_the_levels():
    setting = Setting(pamela_text.parse(LEVELS, "levels"), MachineModel({}), 1)
    assert predict(setting, "global").seconds == TimeRange(9, 9)
    assert predict(setting, "phase").seconds == TimeRange(9, 13)


def test_too_many_paths_are_refused():
    links = ["T1=B1(1)<<NULL"]
    for k in range(2, 32, 2):
        before = f"T{k - 1}" if k == 2 else f"T{k - 2},T{k - 1}"
        links += [f"T{k}=B{k}(1)<<{before}", f"T{k + 1}=B{k + 1}(1)<<{before}"]
    codes = "".join(f'B{k} = "C{k}";' for k in range(1, 33))
    tangled = pasl.parse(f"{codes} %% {';'.join([*links, 'T32=B32(1)<<T30,T31'])};")
    with pytest.raises(InputError, match="on the paths"):
        steps(tangled)


@pytest.mark.parametrize(
    ("links", "message"),
    [
        (("T1=B1(1)<<T2", "T2=B2(1)<<T1"), "T2 does not come before"),
        (("T1=B1(2)<<NULL", "T2=B2(1)<<T1"), "T1 has 2 tasks"),
        (("T1=B1(1)<<NULL", "T2=B2(5)<<NULL", "T3=B3(1)<<T1"), "T2 has no input"),
        (("T1=B9(1)<<NULL",), "B9 is not declared"),
        (("T1=B1(1)<-NULL",), "cannot read"),
    ],
)
def test_wrong_links_are_named(links, message):
    with pytest.raises(InputError, match=message):
        parsed(*links)


@pytest.mark.row("000:F19-23")
def test_the_model_follows_the_graph():
    bodies = {f"C{k}": Operation("a") for k in range(1, 7)}
    sizes = {("dataSizeIn", k): 8.0 for k in (1, 2)} | {("dataSizeOut", k): 8.0 for k in (1, 2)}
    model = build(graph(), bodies, sizes, "links")
    assert pamela.shown(model.parts["L"]).split() == (
        "{ L_1; ( L_2||{ L_3; (L_4||L_5); }); L_6; }".replace("( L_2", "(L_2").split()
    )
    terms = bound_terms(model)
    assert terms["T_COORD"] == "task[0,0](COORD) + task[3,0](COORD) + task[4,0](COORD) + task[5,0](COORD)"
    one = "sum[i](send[p,COORD](dataSizeOut(task[{0},0])))"
    # the third batch feeds two: its result is sent twice (F22)
    twice = "sum[i](send[p,COORD](dataSizeOut(task[2,0])) + send[p,COORD](dataSizeOut(task[2,0])))"
    assert terms["T_net[p]"] == f"max[p]({one.format(1)} + {twice})"
    assert terms["T_comp"] == "max[p](sum[i](task[1,0](p)) + sum[i](task[2,0](p)))"


def test_a_batch_without_source_is_named():
    with pytest.raises(InputError, match="no source of C1"):
        build(graph(), {}, {})
