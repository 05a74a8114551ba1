"""The names that Python code binds: constants and functions of a file after it is loaded.

A name is a constant if its last value at the top level of the file follows from literals. Names bound in any
other way (in a conditional or loop, by an import, by `global` in a function) are unknown. A name that a
function binds is local to it, as in Python.
"""

import ast
from collections.abc import Iterator

from fembench.errors import InputError
from fembench_studies.pamela.known import value_of

UNREADABLE = (ValueError, TypeError, SyntaxError, RecursionError, MemoryError)
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def bound(node: ast.AST) -> set[str]:
    """Names that a statement binds, including those inside nested functions."""
    found = set()
    for n in ast.walk(node):
        if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load):
            found.add(n.id)
        elif isinstance(n, ast.alias):
            found.add((n.asname or n.name).split(".")[0])
        elif isinstance(n, Definition):
            found.add(n.name)
        elif isinstance(n, (ast.Global, ast.Nonlocal)):
            found |= set(n.names)
        elif isinstance(n, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and n.name:
            found.add(n.name)
    return found


def own_names(function: ast.FunctionDef) -> set[str]:
    """The local names of a function: its parameters, and the names that it binds."""
    return {a.arg for a in parameters(function)}.union(*(bound(line) for line in function.body))


def parameters(function: ast.FunctionDef) -> list[ast.arg]:
    """Parameters in order, keyword-only ones last."""
    return [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]


def functions_of(module: ast.Module) -> dict[str, ast.FunctionDef]:
    """Functions by name after the file is loaded, without names that were rebound."""
    found: dict[str, ast.FunctionDef] = {}
    for line in module.body:
        _forget(found, _at_top(line))
        if isinstance(line, ast.FunctionDef):
            found[line.name] = line
    return {name: f for name, f in found.items() if name not in _global_names(module)}


def constants_of(module: ast.Module, until: ast.stmt | None = None) -> dict:
    """Constants by name, up to the statement `until` or to the end of the file."""
    found: dict = {}
    for line in module.body:
        if line is until:
            break
        values = dict(_given(line, found))
        _forget(found, _at_top(line))
        found |= values
    changed = _global_names(module)
    return {name: value for name, value in found.items() if name not in changed}


def _forget(found: dict, names: set[str]) -> None:
    """Forget the values of these names; `from x import *` may bind every name."""
    for name in list(found) if "*" in names else names:
        found.pop(name, None)


def bound_of(module: ast.Module) -> set[str]:
    """Names that the file binds at its top level or by `global`; they hide Python's built-ins."""
    return _global_names(module).union(*map(_at_top, module.body))


def _at_top(line: ast.stmt) -> set[str]:
    """Names that a statement binds at the top level when the file is loaded."""
    return {line.name} if isinstance(line, Definition) else bound(line)


def _global_names(module: ast.Module) -> set[str]:
    return {name for n in ast.walk(module) if isinstance(n, ast.Global) for name in n.names}


def _given(line: ast.stmt, known: dict) -> Iterator[tuple[str, object]]:
    """(name, value) of each target, if the statement assigns a known value."""
    value: ast.expr | None = None
    targets: list[ast.expr] = []
    if isinstance(line, ast.Assign):
        targets, value = line.targets, line.value
    elif isinstance(line, ast.AnnAssign):
        targets, value = [line.target], line.value
    elif isinstance(line, ast.AugAssign) and isinstance(line.target, ast.Name):
        targets = [line.target]
        value = ast.BinOp(ast.Name(line.target.id, ast.Load()), line.op, line.value)
    if value is None or not all(isinstance(t, ast.Name) for t in targets):
        return
    found = _literal(value, known)
    if found is not None:
        yield from ((t.id, found) for t in targets if isinstance(t, ast.Name))


def _literal(value: ast.expr, known: dict) -> object:
    number = value_of(value, known)
    if number is not None:
        return number
    try:
        return ast.literal_eval(value)
    except UNREADABLE:
        return None


def matched(function: ast.FunctionDef, call: ast.Call) -> tuple[dict[str, ast.expr], dict[str, ast.expr]]:
    """(arguments, defaults) of a call, by parameter, in the parameters' order. Raises InputError."""
    spec, names = function.args, [a.arg for a in parameters(function)]
    if spec.vararg or spec.kwarg or any(isinstance(a, ast.Starred) for a in call.args):
        raise InputError("takes * or ** arguments, whose number is unknown")
    by_position = len(spec.posonlyargs) + len(spec.args)
    if len(call.args) > by_position:
        raise InputError(f"{len(call.args)} arguments, expected at most {by_position}")
    given = dict(zip(names, call.args))
    for keyword in call.keywords:
        if keyword.arg is None:
            raise InputError("takes * or ** arguments, whose number is unknown")
        if keyword.arg in given or keyword.arg not in names[len(spec.posonlyargs) :]:
            raise InputError(f"unexpected or repeated argument '{keyword.arg}'")
        given[keyword.arg] = keyword.value
    defaults = defaults_of(function)
    if missing := [n for n in names if n not in given and n not in defaults]:
        raise InputError(f"missing argument '{missing[0]}'")
    return given, {n: d for n, d in defaults.items() if n not in given}


def defaults_of(function: ast.FunctionDef) -> dict[str, ast.expr]:
    """Parameter -> its default."""
    spec = function.args
    plain = [*spec.posonlyargs, *spec.args]
    found = dict(zip((a.arg for a in plain[len(plain) - len(spec.defaults) :]), spec.defaults))
    return found | {a.arg: d for a, d in zip(spec.kwonlyargs, spec.kw_defaults) if d is not None}
