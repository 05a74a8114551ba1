"""Acceptance A5 and A6 of thesis-000: operations counted in source."""

import ast

import pytest
from thesis_000 import DATA

from fembench.base.errors import InputError
from fembench.model.closed_form import as_interval
from fembench_studies.pamela import pamela_text
from fembench_studies.pamela.costs import Conditionals, count, seconds
from fembench_studies.pamela.pamela import Choice, Operation, PamelaLoop, PamelaModel, Sequence, as_text
from fembench_studies.pamela.source import analyse

REGISTRY = {"random": "", "np.dot": "dot"}


def flat(node):
    """Names of operations, loops and conditionals, in order."""
    if isinstance(node, Operation):
        return [node.name if node.times == "1" else f"{node.times}*{node.name}"]
    if isinstance(node, Sequence):
        return [n for i in node.items for n in flat(i)]
    if isinstance(node, PamelaLoop):
        return [f"seq({node.low},{node.high})", *flat(node.body), "end"]
    assert isinstance(node, Choice)
    return ["if", *flat(node.then), "else", *flat(node.other), "end"]


def body(*lines, name="f", loops="figure", head="", arguments=""):
    text = head + f"def f({arguments}):\n" + "".join(f"    {line}\n" for line in lines)
    return flat(analyse(text, registry=REGISTRY, loops=loops).body(name))


@pytest.mark.row("000:F15b")
def test_a_switch_costs_its_comparisons_and_the_case_that_is_chosen():
    cases = ["match k:", "    case 1:", "        y = x", "    case 2 | 3:", "        y = x + x"]
    cases += ["    case _:", "        y = x * x"]
    chain = ["if k == 1:", "    y = x", "elif k == 2 or k == 3:", "    y = x + x", "else:", "    y = x * x"]
    arguments = "k: int, x: int"
    assert body(*cases, arguments=arguments) == body(*chain, arguments=arguments)
    assert body(*cases[:5], arguments=arguments) == body(*chain[:4], arguments=arguments)
    assert body(*cases[:3], arguments=arguments)[:3] == ["access", "compare", "if"]
    left = ["match k:", "    case 1:", "        return x", "y = x * x"]
    assert body(*left, arguments=arguments) == body(
        "if k == 1:", "    return x", "y = x * x", arguments=arguments
    )


@pytest.mark.row("000:F15b")
def test_small_integers_are_computed_with_as_int():
    whole = body("z: int = x + y", arguments="x: int, y: int")
    for kind in ("byte", "short", "char"):
        assert body(f"z: {kind} = x + y", arguments=f"x: {kind}, y: {kind}") == whole


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["match k + 1:", "    case 1:", "        y = 1"], "expected a name"),
        (["match k:", "    case [a, b]:", "        y = 1"], "expected constants"),
        (["match k:", "    case 1 if k > 0:", "        y = 1"], "expected constants"),
        (["match k:", "    case _:", "        y = 1"], "without a constant"),
    ],
)
def test_a_switch_on_anything_but_constants_is_refused_with_its_line(lines, message):
    with pytest.raises(InputError, match=f"line 2.*{message}|line 3.*{message}"):
        body(*lines, arguments="k: int")


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
    assert flat(source.body("f")) == ["assign_int", "access", "assign_int", "m$n$1000"]
    assert "seq(0,999)" in flat(source.bodies["m$n$1000"])


@pytest.mark.row("000:F15-18")
def test_the_kernel_of_the_thesis():
    source = analyse((DATA / "seed000_pi.py").read_text(), registry=REGISTRY, loops="listing")
    cost = count(source.body("ProcessData"), PamelaModel({}))
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
    model = PamelaModel(
        {"f": analyse("def f(s: double):\n" + "".join(f"    {x}\n" for x in lines)).body("f")}
    )
    assert counted(count(model.parts["f"], model), "sum_double") == 0 + 1 + 2 + 3


def counted(cost, operation):
    """Number of occurrences of the operation in a cost, including loops."""
    inside = sum(turns * counted(body, operation) for turns, body in cost.loops)
    return cost.operations.get(operation, 0) + inside


def test_a_registered_call_costs_its_operation():
    assert body("s = np.dot(x, x)", arguments='x: "double[3000]"') == ["dot", "assign_double"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("y = np.sort(x)", r"line 2: call of 'np.sort': not registered"),
        ("for i in range(n): s = 1", "'n' is not known before the run"),
        ("f(x)", "calls itself"),
        ("y = [v for v in x]", "cannot count the operations of"),
        ("raise x", "cannot count the operations of"),
    ],
)
def test_what_cannot_be_costed_is_an_error(line, message):
    with pytest.raises(InputError, match=message):
        body(line, arguments='x: "double[30]", n: int, z: double')


def test_functions_that_call_each_other_are_refused():
    text = "def g(x: int):\n    f(x)\ndef f(x: int):\n    g(x)\n"
    with pytest.raises(InputError, match="calls itself"):
        analyse(text).body("f")


def total(text, name="f", operation="sum_double"):
    """Number of occurrences of an operation in a function and its callees."""
    source = analyse(text, registry=REGISTRY)
    model = PamelaModel({name: source.body(name), **source.bodies})
    return counted(count(model.parts[name], model), operation)


WORK = "def work(n: int, s: double):\n    for i in range(n):\n        s += 1.0\n"


@pytest.mark.parametrize(
    ("text", "turns"),
    [
        (f"{WORK}def f(s: double):\n    work(5, s)\n", 5),
        ("n: int = 3\nm = k = n\ndef f(s: double):\n    for i in range(m + k):\n        s += 1.0\n", 6),
        ("def f(s: double):\n    n = 3\n    n += 2\n    for i in range(n):\n        s += 1.0\n", 5),
        ("def f(s: double):\n    n = m = 3\n    for i in range(m):\n        s += 1.0\n", 3),
        ("def f(s: double):\n    return 1\n    s += 1.0\n", 0),
        (f"{WORK}def f(s: double):\n    work(1000001, s)\n    work(1000002, s)\n", 2_000_003),
        (f"{WORK}def f(s: double):\n    random(work(4, s))\n", 4),
    ],
)  # fmt: skip
def test_iterations_are_counted_as_python_makes_them(text, turns):
    """One addition per iteration, two if the loop counts in doubles."""
    assert total(text) == turns


class Multiplications(ast.NodeTransformer):
    """Calls a function for each a * b."""

    def visit_BinOp(self, node):
        self.generic_visit(node)
        arguments = [node.left, node.right]
        return (
            ast.Call(ast.Name("times", ast.Load()), arguments, []) if isinstance(node.op, ast.Mult) else node
        )


def multiplied(text):
    """Number of multiplications when Python runs f."""
    made = []
    names = {"times": lambda a, b: made.append(1) or a * b, "random": lambda *_: 0.5}
    tree = ast.fix_missing_locations(Multiplications().visit(ast.parse(text)))
    exec(compile(tree, "f", "exec"), names)
    names["f"]()
    return len(made)


def priced(text, q=0.0, codes=("f",)):
    """Multiplications of f in the model; `q`: weight of a conditional's first branch."""
    source = analyse(text, registry=REGISTRY)
    asked = {code: source.body(code) for code in codes}
    model = pamela_text.parse(as_text(PamelaModel({**source.bodies, **asked, "L": Operation("f")})))
    cost = count(model.parts["f"], model)
    share = Conditionals("q", {"": q})
    return seconds(cost, lambda name: as_interval(name.startswith("mpy_")), share).low


HALVED = "def {}(n):\n    s = 1.0\n    for k in range(n):\n        s = s * 0.5\n    return {}\n"
WORKS = HALVED.format("work", "s") + HALVED.format("zero", "0") + HALVED.format("both", "[[s, s], s]")
TEN = "    for i in range(10):\n        "


@pytest.mark.parametrize(
    ("text", "q"),
    [
        ("def f():\n    x = both(1000)[0]\n", 0),
        ("def f():\n    x = both(9)[0][zero(3)]\n", 0),
        ("def f():\n    both(9)[0] = 5.0\n", 0),
        ("def f():\n    both(9)[zero(4)][zero(3)] += 5.0\n", 0),
        ("def f():\n    a = [1.0, 2.0]\n    a[zero(7)] += 1.0\n", 0),
        ("def f():\n    a = [1.0, 2.0]\n    a[zero(7)] += work(3)\n", 0),
        ("def f():\n    a = [1.0, 2.0]\n    x = a[zero(5)] * a[zero(6)]\n", 0),
        ("def f():\n    a = [1.0, 2.0]\n    a[zero(5)] = a[zero(6)] = work(7)\n", 0),
        ("def f():\n    x = 2.0\n    random(x * x)\n", 0),
        ("def f():\n    x = 2.0\n    random(work(4) + x * x)\n", 0),
        (f"def f():\n    s = 0.0\n{TEN}if i == 0 and work(50) < 1.0:\n            s = s + 1.0\n", 1 / 10),
        (f"def f():\n{TEN}s = i < 9 or work(50)\n", 1 / 10),
        ("def f():\n    s = 1 > 0 and 2 > 1 and work(3)\n", 1),
        ("def f():\n    s = [work(2), (work(3), -work(4))]\n", 0),
        (HALVED.format("work__n_5", "s") + "def f():\n    work(5)\n    work__n_5(2)\n    work(5)\n", 0),
        ("def work__n_5():\n    return 1\ndef f():\n    work__n_5()\n    work(5)\n", 0),
        ("def access(n):\n    return n * n\ndef f():\n    n = 3\n    access(n)\n    work(n)\n", 0),
    ],
)  # fmt: skip
def test_multiplications_are_those_that_python_makes(text, q):
    assert priced(WORKS + text, q) == pytest.approx(multiplied(WORKS + text))


def test_a_task_s_code_is_not_called_like_an_operation():
    with pytest.raises(InputError, match="dot is the name of an operation"):
        total("def dot():\n    return 1\n", "dot")


def test_a_function_called_with_an_int_and_a_double_is_two():
    source = analyse("def g(x):\n    y = x + x\ndef f():\n    g(5)\n    g(5.0)\n")
    source.body("f")
    sums = [n for name, node in source.bodies.items() if name != "f" for n in flat(node) if n[:3] == "sum"]
    assert sums == ["sum_int", "sum_double"]


def test_what_follows_a_conditional_return_is_the_other_branch():
    lines = ["if x > 1:", "    y = 1", "    return y", "y = 2.0"]
    expected = ["access", "compare", "if", "assign_int", "access", "else", "assign_int", "end"]
    assert body(*lines, arguments="x: int, y: int") == expected


N_TURNS = "def f():\n    for i in range(n):\n        pass\n"
I_TURNS = "        for j in range(i):\n            pass\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"n = 1000\n{WORK}def f(s: double, k: int):\n    work(k, s)\n", "'n' is not known"),
        ("n = 1000\ndef f(n: int):\n    for i in range(n):\n        pass\n", "'n' is not known"),
        (f"n = 9\n{N_TURNS}    n = 3\n", "'n' is not known"),
        (f"n = 9\nif x:\n    n = 8\n{N_TURNS}", "'n' is not known"),
        (f"n = 9\nfrom x import n\n{N_TURNS}", "'n' is not known"),
        (f"n = 9\nfrom x import *\n{N_TURNS}", "no function f"),
        (f"n = 9\n{N_TURNS}def g():\n    global n\n    n = 8\n", "'n' is not known"),
        (f"def f():\n    for i in range(9):\n        for i in range(2):\n            pass\n{I_TURNS}",
         "'i' is not known"),
        (f"def f():\n    for i in range(9):\n        i += 1\n{I_TURNS}", "'i' is not known"),
        (f"def f():\n    for i in range(0, 9, 2):\n{I_TURNS}", "expected 'for i in range"),
        ("def f():\n    for i in range(3):\n        pass\n    else:\n        pass\n", "expected 'for i in"),
        ("def f():\n    while 1 > 0:\n        pass\n", "cannot count the operations of 'while"),
        ("def f():\n    x = 1 if 2 > 1 else 3\n", "cannot count the operations of '1 if"),
        ("def f():\n    x = 1 < 2 < 3\n", "cannot count the operations of '1 < 2 < 3'"),
        ("def f(n=3):\n    return n\n", "parameters without defaults"),
        ("def f():\n    for i in range(9):\n        return i\n", "line 2: return inside a loop"),
        ("def f():\n    for i in range():\n        pass\n", "expected 'for i in range"),
        ("def f():\n    x = int()\n", "call of 'int'"),
        ("def f(random: int):\n    random(3)\n", "a local name of 'f'"),
        (f"{WORK}work = 3\ndef f():\n    work(3, 1.0)\n", "call of 'work': not registered"),
        (f"{WORK}def f():\n    work(3)\n", "line 5: call of 'work': expected 2 arguments by position"),
        (f"{WORK}def f():\n    work(3, s=5)\n", "expected 2 arguments by position"),
        (f"{WORK}def f(a: int):\n    work(*a)\n", "expected 2 arguments"),
        ("def g(*a):\n    return 1\ndef f():\n    g()\n", "parameters without"),
        ("def f():\n    def g():\n        return 1\n    g()\n", "cannot count the operations of 'def g"),
        ("@jit\ndef f():\n    return 1\n", "is decorated"),
        ("def f():\n    x = " + "-" * 5000 + "1\n", "nested too deeply|not Python"),
        ("def f():\n    x = " + "1 + " * 800 + "1\n", "nested too deeply|not Python"),
        ("def f():\n    \0\n", "not Python"),
        ("def f(x):\n    x.y(1)[0] = 2\n", "a local name of 'f'"),
        ("def f():\n    a[work(3)]: int\n", "expected a value"),
        ("def f():\n    for i in range(3 if g() else 4):\n        pass\n", "line 2"),
        ("def f():\n    x = random(a=(b := g(1)))\n", "cannot count the operations of"),
        ("def f():\n    x = g(1).y\n", "cannot count the operations of 'g"),
        ("def f():\n    x = 3 in y\n", "cannot count the operations of '3 in y'"),
        ("range = g\ndef f():\n    for i in range(3):\n        pass\n", "expected 'for i in range"),
        ("from m import float\ndef f():\n    x = float(3)\n", "call of 'float'"),
    ],
)  # fmt: skip
def test_what_would_be_counted_wrong_is_refused(text, message):
    with pytest.raises(InputError, match=message):
        total(text)


@pytest.mark.parametrize(
    "value", ["3", "{'f': 3}", "{'f': {'on': 3}}", "{'f': {'in': 'x'}}", "{'f': {'in': -1}}"]
)
def test_sizes_that_are_none_are_refused(value):
    with pytest.raises(InputError, match="BYTES"):
        analyse(f"BYTES = {value}\ndef f():\n    return 1\n").sizes()
