"""Which methods go together. Each function returns one line saying what does not fit, or "" if all does."""

from fembench.methods.lookup import (
    MethodChoice,
    names,
    one_of,
    precond_of,
    preconds,
    storage_of,
    storages,
    variant_of,
    variants,
)


def mismatch(choice: MethodChoice) -> str:
    """Whether the solver has the storage, the preconditioner and the variant."""
    solver = choice.solver
    if storage_of(choice.storage).solver != solver:
        return f"storage '{choice.storage}': solver {solver} has {', '.join(names(storages(solver)))}"
    if solver not in precond_of(choice.precond).solvers:
        return f"precond '{choice.precond}': solver {solver} has {', '.join(names(preconds(solver)))}"
    known = names(variants(solver))
    if choice.variant not in known:
        hint = "; choose others by petsc_options, as in '-ksp_type pipecg'" if solver == "petsc" else ""
        return f"variant '{choice.variant}': solver {solver} has {', '.join(known)}{hint}"
    return ""


def mismatch_blocking(choice: MethodChoice) -> str:
    """Whether blocking messages can serve the choice."""
    if choice.solver == "own" and variant_of(choice.variant).waits:
        return ""
    waiting = one_of(names(v for v in variants() if v.waits))
    return f"solver {choice.solver}, variant '{choice.variant}': expected solver own, variant {waiting}"


def mismatch_balance(choice: MethodChoice) -> str:
    """Whether blocks of cells can move while the choice iterates."""
    balanced = names(v for v in variants() if v.balances)
    if choice.solver != "own" or choice.variant not in balanced:
        expected = f"expected solver own, variant {one_of(balanced)}"
        return f"solver {choice.solver}, variant '{choice.variant}': {expected}"
    if not precond_of(choice.precond).balances:
        known = one_of(names(p for p in preconds() if p.balances))
        return f"precond '{choice.precond}': expected {known}"
    return ""
