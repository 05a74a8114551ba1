"""Acceptance A5 and A6 of thesis-000: operations counted in source."""

import pytest
from thesis_000 import DATA

from fembench.analytic.costs import count, counted
from fembench.analytic.expressions import Registered
from fembench.analytic.pamela import Choice, Loop, Model, Operation, Sequence
from fembench.analytic.source import analyse
from fembench.base.errors import InputError

REGISTRY = {"random": Registered(""), "np.dot": Registered("dot", 0), "@": Registered("spmv", 0)}


def flat(node):
    """Names of operations, loops and conditionals in their order."""
    if isinstance(node, Operation):
        return [node.name if node.times == "1" else f"{node.times}*{node.name}"]
    if isinstance(node, Sequence):
        return [n for i in node.items for n in flat(i)]
    if isinstance(node, Loop):
        return [f"seq({node.low},{node.high})", *flat(node.body), "end"]
    assert isinstance(node, Choice)
    return ["if", *flat(node.then), "else", *flat(node.other), "end"]


def body(*lines, name="f", loops="figure", head="", arguments=""):
    text = head + f"def f({arguments}):\n" + "".join(f"    {line}\n" for line in lines)
    return flat(analyse(text, registry=REGISTRY, loops=loops).body(name))


def test_declarations():
    assert body("w: double = 10000.0") == ["assign_double"]
    assert body("x: int = 10") == ["assign_int"]


def test_a_sum():
    assert body("z: int = x + y", arguments="x: int, y: int") == ["access", "access", "sum_int", "assign_int"]


def test_a_loop():
    expected = ["assign_int", "access", "compare", "seq(0,49999)", "access", "assign_int"]
    expected += ["access", "sum_int", "assign_int", "access", "compare", "end"]
    assert body("for i in range(50000):", "    y = x", arguments="x: int") == expected


def test_conditionals_inside_each_other():
    lines = [
        "if x > 10:",
        "    a = 1",
        "else:",
        "    if x > 20:",
        "        b = 2.0",
        "    else:",
        "        c = 3",
    ]
    expected = ["access", "compare", "if", "assign_int", "else", "access", "compare"]
    expected += ["if", "assign_double", "else", "assign_int", "end", "assign_int", "end"]
    assert body(*lines, "    d = 4", arguments="x: int") == expected


def test_a_call_passes_known_bounds_on():
    head = "def m(n: int):\n    for i in range(n):\n        s = n\n"
    source = analyse(head + "def f():\n    y = 1000\n    m(y)\n", registry=REGISTRY)
    assert flat(source.body("f")) == ["assign_int", "access", "assign_int", "m__n_1000"]
    assert "seq(0,999)" in flat(source.bodies["m__n_1000"])


def test_the_kernel_of_the_thesis():
    source = analyse((DATA / "seed000_pi.py").read_text(), registry=REGISTRY, loops="listing")
    cost = count(source.body("ProcessData"), Model({}))
    (turns, one), *_ = cost.loops
    assert turns == 10_000_000
    assert one.operations == {
        "access": 7,
        "compare": 2,
        "assign_double": 2,
        "assign_int": 1,
        "sum_int": 1,
        "sum_double": 1,
        "mpy_double": 2,
    }
    assert one.choices[0].then.operations == {"access": 1, "assign_int": 1, "sum_int": 1}
    assert source.sizes() == {"ProcessData": {"in": 4, "out": 4, "code": 879}}


def test_loops_inside_loops_may_depend_on_them():
    lines = ["for i in range(4):", "    for j in range(i):", "        s += 1.0"]
    model = Model({"f": analyse("def f(s: double):\n" + "".join(f"    {x}\n" for x in lines)).body("f")})
    assert counted(count(model.parts["f"], model))["sum_double"] == 0 + 1 + 2 + 3


def test_a_counting_while_loop():
    lines = ["i = 1", "while i <= n:", "    x = 2.0 * x", "    i += 1"]
    found = body(*lines, head="n = 12\n", arguments="x: double")
    assert found[1:5] == ["access", "access", "compare", "seq(1,12)"]


def test_vectorised_calls_cost_their_registered_operation():
    assert body("s = np.dot(x, x)", arguments='x: "double[3000]"') == ["3000*dot", "assign_double"]
    assert body("y = A @ x", arguments='A: "double[81]", x: double') == ["81*spmv", "assign_double"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("y = np.sort(x)", r"line 2: call of 'np.sort': not registered"),
        ("s = np.dot(z, x)", "length of 'z' is not known"),
        ("for i in range(n): s = 1", "'n' is not known before it runs"),
        ("while x > 1.0: x = x / 2.0", "turns are not known"),
        ("f(x)", "calls itself"),
        ("y = [v for v in x]", "cannot cost"),
        ("raise x", "cannot cost"),
    ],
)
def test_what_cannot_be_costed_is_an_error(line, message):
    with pytest.raises(InputError, match=message):
        body(line, arguments='x: "double[30]", n: int, z: double')


def test_functions_that_call_each_other_are_refused():
    text = "def g(x: int):\n    f(x)\ndef f(x: int):\n    g(x)\n"
    with pytest.raises(InputError, match="calls itself"):
        analyse(text).body("f")
