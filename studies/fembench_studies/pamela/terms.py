"""The terms of T = max(…) as text, in the form of Herai 2005, App. A.4."""

from fembench_studies.pamela.amounts import compact, names_in
from fembench_studies.pamela.bounds import expand
from fembench_studies.pamela.costs import Conditionals, as_text, count
from fembench_studies.pamela.pamela import (
    PATH,
    Choice,
    Delay,
    Node,
    PamelaLoop,
    PamelaModel,
    PamelaParallel,
    Sequence,
    Use,
    children,
)


def expression(model: PamelaModel, conditionals: Conditionals | None = None) -> str:
    """Costs of tasks, one per line, then T=max(…) with one named term per resource."""
    tasks = [
        f"{name}={as_text(count(model.parts[name], model), conditionals)}"
        for name in dict.fromkeys(model.tasks.values())
        if name in model.parts
    ]
    terms = [f"  /* {name} */ {text}" for name, text in bound_terms(model).items()]
    return "\n".join([*tasks, "T=max(", ",\n".join(terms), ")"])


def bound_terms(model: PamelaModel) -> dict[str, str]:
    """'T_net', 'T_COORD', …, 'T_0' -> its expression; all workers share a term, max[p](…)."""
    root = expand(model.parts["L"], model)
    found = {f"T_{label(r)}": _of_family(root, r) for r in resources(root)}
    whole = expand(model.parts[PATH], model) if PATH in model.parts else root
    return found | {"T_0": _path(whole)}


def _of_family(root: Node, resource: str) -> str:
    """Total use of a resource; for one resource per machine, the maximum over machines."""
    own = [v for v in sorted(names_in(resource)) if v in variables(root)]
    text = _of_resource(root, resource, frozenset(own))
    return f"max[{','.join(own)}]({text})" if own else text


def label(resource: str) -> str:
    """The name of a resource; a loop variable alone means a machine's processor."""
    return "comp" if resource.islower() and len(resource) == 1 else resource


def resources(node: Node) -> list[str]:
    """Resources as written in the model, in order of first use."""
    if isinstance(node, Use):
        return [node.resource]
    return list(dict.fromkeys(r for inner in children(node) for r in resources(inner)))


def variables(node: Node) -> set[str]:
    """The variables of all loops in a node."""
    own = {node.variable} if isinstance(node, PamelaLoop) else set()
    return own.union(*map(variables, children(node)))


def _of_resource(node: Node, resource: str, own: frozenset[str]) -> str:
    """The sum of its uses; a variable in `own` is one machine, not summed over."""
    if isinstance(node, Use):
        return compact(node.amount) if node.resource == resource else ""
    if isinstance(node, (Sequence, PamelaParallel)):
        return " + ".join(t for i in node.items if (t := _of_resource(i, resource, own)))
    if isinstance(node, Choice):
        return _larger(_of_resource(node.then, resource, own), _of_resource(node.other, resource, own))
    if isinstance(node, PamelaLoop):
        inner = _of_resource(node.body, resource, own)
        return inner if node.variable in own else _over("sum", node, inner)
    return ""


def _path(node: Node) -> str:
    """The critical path."""
    if isinstance(node, (Use, Delay)):
        return compact(node.amount)
    if isinstance(node, Sequence):
        return " + ".join(t for i in node.items if (t := _path(i)))
    if isinstance(node, PamelaParallel):
        return f"max({', '.join(_path(i) for i in node.items)})"
    if isinstance(node, Choice):
        return _larger(_path(node.then), _path(node.other))
    if isinstance(node, PamelaLoop):
        return _over("sum" if node.kind == "seq" else "max", node, _path(node.body))
    return ""


def _larger(then: str, other: str) -> str:
    return f"max({then or 0},{other or 0})" if then or other else ""


def _over(what: str, loop: PamelaLoop, inner: str) -> str:
    return f"{what}[{loop.variable}]({inner})" if inner else ""
