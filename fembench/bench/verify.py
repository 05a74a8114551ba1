"""Verification after the clock has stopped: rules A of docs/validity.md.

The check is independent of the timed code: internal forces are summed element by
element from strains (`fem.residual`), never from the stored matrix.

Fingerprint of a solution: seeded projections, the same for every partition.

Weights come from the global number of a dof by a counter-based hash (splitmix64), so
every rank computes those of its own dofs without knowing the others. For zero-mean
unit-variance weights w, E[(w . (u - v))^2] = |u - v|^2: the root mean square of the
differences of two fingerprints estimates the distance between two solutions that
were never on the same host.

The reference of a run that has no other: its own system, solved once more with another
storage.

Element by element, nothing is assembled, so neither the matrix nor its product is
shared with the run that was timed, and little memory is needed. The parts are those of
the run: the partition itself is tested by comparing with the one-rank run only.

Fixed work may end where rounding decides the result: CG has lost the orthogonality of
its directions, and any two storages disagree. So fixed work is solved a third time,
with 1.1 times the load. The solution is linear in the load, but no rounding is the
same. If both differ by more, there is no reference.
"""

import numpy as np
from msgspec import Struct, structs
from numpy.typing import NDArray

from fembench.base.arrays import F64, I64
from fembench.bench.measure import control_of
from fembench.bench.prepare import Prepared
from fembench.fem.boundary import local_load, prescribed
from fembench.fem.extent import rigid_modes
from fembench.fem.fields import l2_squares
from fembench.fem.materials import part_of
from fembench.fem.problem import exact_solution
from fembench.fem.residual import internal_force
from fembench.fem.selection import selected
from fembench.ranks.comm import MAX, SUM, Comm
from fembench.ranks.interface import Interface
from fembench.ranks.subdomain import Subdomain
from fembench.records.answer import has_twin
from fembench.records.case import Case
from fembench.records.case_fields import CaseMethod
from fembench.records.record import Reference, Verification
from fembench.solve.from_names import build_solver
from fembench.solve.operators import Operator
from fembench.timing.tracer import NullTracer


class Solved(Struct, frozen=True):
    """One rank's view of a finished solve."""

    prepared: Prepared
    operator: Operator
    x: F64  # (3 * n_active,) solution of CG

    @property
    def u(self) -> F64:
        """(n_nodes, 3) displacement, prescribed values filled in."""
        sub = self.prepared.sub
        u = prescribed(self.prepared.spec, sub, self.prepared.extent)
        free = ~sub.restrained[: sub.n_active]
        u[: sub.n_active][free] = self.x.reshape(-1, 3)[free]
        return u

    def force(self, u: F64, cells: slice | NDArray = slice(None)) -> F64:
        """(n_nodes, 3) internal force of the rank's own cells, or of these among them."""
        sub = self.prepared.sub
        lam, mu = self.prepared.lame
        lame = part_of(lam, cells), part_of(mu, cells)
        return internal_force(sub.x, sub.cells[cells], sub.element, *lame, u)


def verify(solved: Solved) -> Verification:
    """Every check of rules A that a single run allows. Collective."""
    sub = solved.prepared.sub
    interface = solved.prepared.interface
    comm = interface.comm
    u, owned = solved.u, sub.owned_nodes
    force = solved.force(u)
    rhs = interface.update(solved.prepared.rhs.copy())
    reactions = np.zeros(3)
    load = local_load(solved.prepared.spec, sub, solved.prepared.extent)
    comm.Allreduce(((force - load) * sub.restrained).sum(axis=0), reactions, SUM)
    return Verification(
        rhs_norm=_norm(interface, rhs),
        true_residual=_norm(interface, interface.update(_free(sub, load - force))),
        symmetry=_symmetry(solved),
        positive=_positive(solved),
        rigid_body=_rigid_body(solved),
        energy=0.5 * interface.total(float((u * force).sum())),
        fingerprint=fingerprint(comm, sub.global_nodes[owned], u[owned]),
        solution_norm=float(np.sqrt(interface.total(float((u[owned] ** 2).sum())))),
        max_displacement=_largest(interface, np.sqrt((u**2).sum(axis=1))),
        load_displacement=_at_load(solved, u),
        reactions=(float(reactions[0]), float(reactions[1]), float(reactions[2])),
        copies_identical=_copies_identical(interface, solved.x),
        exact_error=_exact_error(solved, u),
    )


def _norm(interface: Interface, v: F64) -> float:
    return float(np.sqrt(interface.dot(v, v)))


def _largest(interface: Interface, values: F64) -> float:
    local = np.array([values.max(initial=0.0)])
    out = np.empty(1)
    interface.comm.Allreduce(local, out, MAX)
    return float(out[0])


def _free(sub: Subdomain, v: F64) -> F64:
    """The active part of v (n_nodes, 3), flat, zero at restrained dofs."""
    return np.where(sub.restrained, 0.0, v)[: sub.n_active].ravel()


def _seeded(sub: Subdomain, projection: int) -> F64:
    """A flat vector that is the same on every sharer, zero at restrained dofs."""
    dofs = _dofs(sub.global_nodes[: sub.n_active])
    return np.where(sub.fixed, 0.0, weights(dofs, projection))


def _multiply(solved: Solved, v: F64) -> F64:
    """A v through the stored operator, summed over sharers."""
    return solved.prepared.interface.update(solved.operator.apply(v))


def _symmetry(solved: Solved) -> float:
    """|x'Ay - y'Ax| / (|x||Ay| + |y||Ax|) for seeded x, y."""
    interface = solved.prepared.interface
    x = _seeded(solved.prepared.sub, 1)
    y = _seeded(solved.prepared.sub, 2)
    Ax, Ay = _multiply(solved, x), _multiply(solved, y)
    scale = _norm(interface, x) * _norm(interface, Ay) + _norm(interface, y) * _norm(interface, Ax)
    return abs(interface.dot(x, Ay) - interface.dot(y, Ax)) / scale if scale else 0.0


def _positive(solved: Solved) -> float:
    """x'Ax / (|x||Ax|) for seeded x."""
    interface = solved.prepared.interface
    x = _seeded(solved.prepared.sub, 3)
    Ax = _multiply(solved, x)
    return interface.dot(x, Ax) / (_norm(interface, x) * _norm(interface, Ax))


def _rigid_body(solved: Solved) -> float:
    """max over six modes of |A r| / (|A||r|), A without restraints.

    A_ff r_f comes from the stored operator, A_fc r_c from the elements; their sum is
    zero. |A| is bounded from below by the largest entry of its diagonal.
    """
    sub = solved.prepared.sub
    interface = solved.prepared.interface
    largest = _largest(
        interface, np.where(sub.fixed, 0.0, interface.update(solved.operator.diagonal().copy()))
    )
    modes = rigid_modes(sub.x, solved.prepared.extent.centre, solved.prepared.extent.diagonal)
    held_nodes = np.flatnonzero(sub.restrained.any(axis=1))
    held = np.flatnonzero(np.isin(sub.cells, held_nodes).any(axis=1))  # cells with a restrained dof
    worst = 0.0
    for k in range(6):
        r = modes[:, :, k]
        free = _free(sub, r)
        coupling = _free(sub, solved.force(np.where(sub.restrained, r, 0.0), held))
        rest = solved.operator.apply(free) + coupling
        rest[sub.fixed] = 0.0
        size = np.sqrt(interface.total(float((r[sub.owned_nodes] ** 2).sum())))
        worst = max(worst, _norm(interface, interface.update(rest)) / (largest * size))
    return worst


def _at_load(solved: Solved, u: F64) -> tuple[float, ...]:
    """Displacement of the loaded node with the lowest number; () without a nodal load."""
    sub = solved.prepared.sub
    comm = solved.prepared.interface.comm
    loaded = np.zeros(sub.n_nodes, bool)
    for force in solved.prepared.spec.forces:
        loaded |= selected(force.on, sub.x, sub.node_tags, solved.prepared.extent)
    here = np.flatnonzero(loaded & sub.owned_nodes)
    best = min(((int(sub.global_nodes[i]), tuple(u[i].tolist())) for i in here), default=None)
    found = [item for item in comm.allgather(best) if item is not None]
    return min(found)[1] if found else ()


def _copies_identical(interface: Interface, x: F64) -> bool:
    same = all(
        np.array_equal(mine.view(np.int64), theirs.view(np.int64)) for mine, theirs in interface.copies(x)
    )
    return interface.total(float(not same)) == 0.0


def _exact_error(solved: Solved, u: F64) -> float:
    """Relative L2 error if the problem has an exact solution, else -1."""
    exact = exact_solution(solved.prepared.spec, solved.prepared.extent)
    if exact is None:
        return -1.0
    sub = solved.prepared.sub
    total = solved.prepared.interface.total
    error, size = l2_squares(sub.x, sub.cells, sub.element, u, exact)
    return float(np.sqrt(total(error) / total(size)))


N_PROJECTIONS = 16
_CHUNK = 1 << 16


def weights(dofs: I64, projection: int) -> F64:
    """(n,) weights of one projection, uniform with mean 0 and variance 1."""
    with np.errstate(over="ignore"):
        z = dofs.astype(np.uint64) * np.uint64(N_PROJECTIONS) + np.uint64(projection)
        z = (z + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    return (z.astype(np.float64) / 2.0**63 - 1.0) * np.sqrt(3.0)


def _dofs(nodes: NDArray[np.integer]) -> I64:
    """(3 n,) the dofs of nodes (n,), numbered globally."""
    return (np.int64(3) * nodes[:, None] + np.arange(3)).ravel()


def fingerprint(comm: Comm, global_nodes: NDArray[np.integer], u: F64) -> tuple[float, ...]:
    """Projections of u (n, 3) at the nodes that this rank owns. Collective."""
    dofs = _dofs(global_nodes)
    values = u.ravel()
    local = np.zeros(N_PROJECTIONS)
    for start in range(0, dofs.size, _CHUNK):
        part = slice(start, start + _CHUNK)
        local += [weights(dofs[part], k) @ values[part] for k in range(N_PROJECTIONS)]
    total = np.empty_like(local)
    comm.Allreduce(local, total, SUM)
    return tuple(total.tolist())


BY_ELEMENTS, ASSEMBLED = "ebe", "sym"
SCALE = 1.1  # of the load; not a power of two, which would round alike
SENSITIVE = 1e-10  # |u| by which rounding may change the solution; rule A5 allows 1e-9


def solved_again(case: Case, prepared: Prepared) -> Reference | None:
    """The reference, at full speed, untimed; None if no other method fits. Collective."""
    method = other_method(case.method)
    if method is None:
        return None
    sub, interface = prepared.sub, prepared.interface
    solver = build_solver(method, sub, interface, prepared.lame, NullTracer(), overlap=case.method.overlap)
    control = control_of(case, prepared.mesh.n_equations)
    result = solver.solve(prepared.rhs, control)
    if not result.converged and not control.fixed:
        return None
    result = structs.replace(result, x=result.x.copy())  # the solver uses its own again
    if control.fixed:
        scaled = solver.solve(SCALE * prepared.rhs, control).x
        off = interface.dot(scaled / SCALE - result.x, scaled / SCALE - result.x)
        if off > SENSITIVE**2 * interface.dot(result.x, result.x):
            return None
    solved = Solved(prepared, solver.operator, result.x)
    u, owned = solved.u, sub.owned_nodes
    return Reference(
        source=f"storage {method.storage}, in the same run",
        energy=0.5 * interface.total(float((u * solved.force(u)).sum())),
        iterations=result.iterations if case.method.solver == "own" else 0,
        fingerprint=fingerprint(interface.comm, sub.global_nodes[owned], u[owned]),
        solution_norm=interface.total(float((u[owned] ** 2).sum())) ** 0.5,
        same_parts=True,
    )


def other_method(method: CaseMethod) -> CaseMethod | None:
    """The method with another storage, and CG of fembench; None if there is none."""
    if not has_twin(method):
        return None
    storage = ASSEMBLED if method.storage == BY_ELEMENTS else BY_ELEMENTS
    recurrence = method.recurrence if method.solver == "own" else "standard"
    return CaseMethod(
        storage=storage,
        precond=method.precond,
        recurrence=recurrence,
        overlap=method.overlap,
        exchange=method.exchange,
    )
