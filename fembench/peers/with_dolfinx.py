"""DOLFINx as a peer: a standalone program for any Python that has dolfinx; imports nothing of fembench.

    python with_dolfinx.py system.npz PRECOND

It assembles linear elasticity on the mesh in the file, sets up PETSc's CG, and prints in one line of JSON
how long that took. Each line of JSON that it reads ({"tolerance", "limit", "out"}) is a solve: x is written
to `out` as a .npy file in the order of the system; the answer holds time and iterations. For DOLFINx 0.5
and later.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np


def main(path, precond):
    import dolfinx
    import petsc4py

    petsc4py.init(["fembench-dolfinx", "-no_signal_handler"])
    system = np.load(Path(path))
    warm = Problem(_tiny(system))  # forms are compiled, once and for all
    del warm
    begin = time.perf_counter()
    problem = Problem(system)
    middle = time.perf_counter()
    ksp = solver_of(problem, precond)
    end = time.perf_counter()
    from petsc4py import PETSc

    library = f"DOLFINx {dolfinx.__version__}, PETSc {'.'.join(map(str, PETSc.Sys.getVersion()))}"
    say({"library": library, "assembly": middle - begin, "setup": end - middle})
    for line in sys.stdin:
        order = json.loads(line)
        say(solve(problem, ksp, order))


def say(words):
    print(json.dumps(words), flush=True)


def solve(problem, ksp, order):
    """One solve from zero; writes x."""
    ksp.setTolerances(rtol=order["tolerance"], atol=0.0, divtol=1e300, max_it=order["limit"])
    x = problem.K.createVecRight()
    begin = time.perf_counter()
    ksp.solve(problem.f, x)
    seconds = time.perf_counter() - begin
    np.save(order["out"], problem.back(x.array))
    return {"seconds": seconds, "iterations": ksp.getIterationNumber()}


class Problem:
    """The stiffness matrix with zero displacement at restrained dofs, and the load of the system."""

    def __init__(self, system):
        import dolfinx
        import ufl
        from mpi4py import MPI

        x, element = np.array(system["x"]), str(system["element"])
        cells = np.asarray(system["cells"], np.int64)
        if element == "hex8":
            cells = cells[:, [0, 1, 3, 2, 4, 5, 7, 6]]  # tensor-product order
        name = {"tet4": "tetrahedron", "hex8": "hexahedron"}[element]
        mesh = dolfinx.mesh.create_mesh(
            MPI.COMM_SELF, *_in_order(cells, x, _coordinate_element(ufl, name), dolfinx)
        )
        V = _vector_space(dolfinx, mesh)
        self.node = node_of(mesh, V)  # of the system, by node of V
        lam, mu = float(system["lam"]), float(system["mu"])
        u, v = ufl.TrialFunction(V), ufl.TestFunction(V)
        strain = ufl.sym(ufl.grad(u))
        stress = 2.0 * mu * strain + lam * ufl.tr(strain) * ufl.Identity(3)
        measure = ufl.dx(metadata={"quadrature_degree": 1 if element == "tet4" else 3})
        form = dolfinx.fem.form(ufl.inner(stress, ufl.sym(ufl.grad(v))) * measure)
        self.x, self.n_active = x, len(system["f"]) // 3
        self.fixed = np.asarray(system["restrained"], bool)[self.node]  # (n_nodes, 3) by node of V
        self.K = _assembled(form, _held(dolfinx, V, self.fixed))
        load = np.zeros((len(x), 3))
        load[: self.n_active] = system["f"].reshape(-1, 3)
        self.f = self.K.createVecRight()
        self.f.array[:] = load[self.node].reshape(-1)

    def back(self, u):
        """(3 n_active,) in the order of the system."""
        out = np.empty((len(self.node), 3))
        out[self.node] = u.reshape(-1, 3)
        return out[: self.n_active].reshape(-1)


def solver_of(problem, precond: str):
    """PETSc's CG with the rigid-body modes as near-null space, set up."""
    from petsc4py import PETSc

    problem.K.setNearNullSpace(near_null_space(problem))
    ksp = PETSc.KSP().create(problem.K.getComm())
    ksp.setOperators(problem.K)
    ksp.setType("cg")
    ksp.getPC().setType(precond)
    ksp.setNormType(PETSc.KSP.NormType.UNPRECONDITIONED)
    ksp.setUp()
    return ksp


def near_null_space(problem):
    """Translations and rotations, zero at restrained dofs, orthonormal."""
    from petsc4py import PETSc

    x = problem.x[problem.node]
    x = x - x.mean(axis=0)
    modes = np.zeros((len(x), 3, 6))
    modes[:, [0, 1, 2], [0, 1, 2]] = 1.0
    for axis, omega in enumerate(np.eye(3)):
        modes[:, :, 3 + axis] = np.cross(omega, x)
    modes[problem.fixed] = 0.0
    basis = np.linalg.qr(modes.reshape(-1, 6))[0]
    vectors = []
    for column in basis.T:
        vector = problem.K.createVecRight()
        vector.array[:] = column
        vectors.append(vector)
    return PETSc.NullSpace().create(vectors=vectors)


def node_of(mesh, V):
    """(n,) which node of the file each node of V is; DOLFINx renumbers both V and the mesh."""
    of_space, of_mesh = (
        np.asarray(getattr(m, "array", m)).reshape(-1) for m in (V.dofmap.list, mesh.geometry.dofmap)
    )
    out = np.empty(len(mesh.geometry.x), np.int64)
    out[of_space] = np.asarray(mesh.geometry.input_global_indices)[of_mesh]
    return out


def _tiny(system):
    """The same kind of problem on the first cell."""
    cells, first = np.unique(system["cells"][:1], return_inverse=True)
    n = len(cells)
    part = {name: system[name] for name in ("element", "lam", "mu")}
    part |= {"x": system["x"][cells], "cells": first.reshape(1, -1), "f": np.zeros(3 * n)}
    return part | {"restrained": np.zeros((n, 3), bool)}


def _coordinate_element(ufl, name):
    try:
        import basix.ufl

        return ufl.Mesh(basix.ufl.element("Lagrange", name, 1, shape=(3,)))
    except ImportError:
        return ufl.Mesh(ufl.VectorElement("Lagrange", name, 1))


def _in_order(cells, x, domain, dolfinx):
    """The arguments of create_mesh, whose order changed in 0.10."""
    version = tuple(int(n) for n in dolfinx.__version__.split(".")[:2])
    return (cells, domain, x) if version >= (0, 10) else (cells, x, domain)


def _vector_space(dolfinx, mesh):
    if hasattr(dolfinx.fem, "functionspace"):
        return dolfinx.fem.functionspace(mesh, ("Lagrange", 1, (3,)))
    return dolfinx.fem.VectorFunctionSpace(mesh, ("Lagrange", 1))


def _held(dolfinx, V, fixed):
    """Dirichlet conditions, one per component: zero at its restrained nodes."""
    dofs = [(3 * np.flatnonzero(fixed[:, c]) + c).astype(np.int32) for c in range(3)]
    zero = np.float64(0.0)
    return [dolfinx.fem.dirichletbc(zero, dofs[c], V.sub(c)) for c in range(3) if dofs[c].size]


def _assembled(form, held):
    from dolfinx.fem.petsc import assemble_matrix

    K = assemble_matrix(form, bcs=held)
    K.assemble()
    return K


if __name__ == "__main__":
    main(*sys.argv[1:3])
