"""Poisson's equation in DOLFINx, on equal parts or on those of `fembench partition --to dolfinx`.

mpirun -n 2 python3 poisson.py box.msh [FOLDER-OF-PARTS]
"""

import sys

import meshio
import numpy as np
import ufl
from dolfinx import fem, mesh
from dolfinx.fem import petsc
from mpi4py import MPI
from petsc4py import PETSc

comm = MPI.COMM_WORLD
parts = {}  # without a map: equal parts, by DOLFINx's own partitioner
if len(sys.argv) > 2:
    sys.path.insert(0, sys.argv[2])
    from map_partitioner import partitioner

    parts = {"partitioner": partitioner}

cells, x = np.empty((0, 4), np.int64), np.empty((0, 3))
if comm.rank == 0:
    read = meshio.read(sys.argv[1])
    cells, x = read.cells_dict["tetra"].astype(np.int64), read.points
shape = ufl.Mesh(ufl.VectorElement("Lagrange", "tetrahedron", 1))
domain = mesh.create_mesh(comm, cells, x, shape, **parts)

V = fem.FunctionSpace(domain, ("Lagrange", 2))
u, v = ufl.TrialFunction(V), ufl.TestFunction(V)
a, b = fem.form(ufl.inner(ufl.grad(u), ufl.grad(v)) * ufl.dx), fem.form(v * ufl.dx)
bottom = fem.locate_dofs_geometrical(V, lambda x: np.isclose(x[0], 0))
fixed = [fem.dirichletbc(PETSc.ScalarType(0), bottom, V)]
uh = fem.Function(V)
solver = PETSc.KSP().create(comm)
solver.setType("cg")
solver.getPC().setType("jacobi")
solver.setTolerances(rtol=1e-8)

comm.Barrier()
start = MPI.Wtime()
A = petsc.assemble_matrix(a, fixed)
A.assemble()
f = petsc.assemble_vector(b)
petsc.apply_lifting(f, [a], [fixed])
f.ghostUpdate(addv=PETSc.InsertMode.ADD, mode=PETSc.ScatterMode.REVERSE)
petsc.set_bc(f, fixed)
solver.setOperators(A)
solver.solve(f, uh.vector)
seconds = comm.allreduce(MPI.Wtime() - start, MPI.MAX)

sizes = comm.gather(domain.topology.index_map(3).size_local)
energy = uh.vector.dot(f)
if comm.rank == 0:
    print(f"cells {sizes} iterations {solver.getIterationNumber()} energy {energy:.6g} seconds {seconds:.3f}")
