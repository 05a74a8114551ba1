"""Poisson's equation on a DMPlex of PETSc, on equal parts or on those of `fembench partition --to petsc`.

mpirun -n 2 python3 poisson.py box.msh [FOLDER-OF-PARTS]
"""

import sys

import numpy as np
from petsc4py import PETSc

plex = PETSc.DMPlex().createFromFile(sys.argv[1])
comm = plex.comm.tompi4py()
if len(sys.argv) > 2:
    sys.path.insert(0, sys.argv[2])
    from map_distribute import distribute

    distribute(plex)
else:
    plex.distribute()  # equal parts, by PETSc's own partitioner

# one unknown per vertex; cells (n, 4) and coordinates in the local numbering
plex.setNumFields(1)
plex.setSection(plex.createSection([1], [1, 0, 0, 0]))
first, last = plex.getHeightStratum(0)
low, high = plex.getDepthStratum(0)
closures = (plex.getTransitiveClosure(cell)[0] for cell in range(first, last))
cells = np.array([c[(c >= low) & (c < high)] - low for c in closures]).reshape(-1, 4)
x = plex.getCoordinatesLocal().array.reshape(-1, 3)

# linear elements: the gradients of the four shape functions, and the volume
edges = x[cells[:, 1:]] - x[cells[:, :1]]
inverse = np.linalg.inv(edges)
gradients = np.concatenate([-inverse.sum(axis=2, keepdims=True), inverse], axis=2)
volumes = abs(np.linalg.det(edges)) / 6
ke = np.einsum("cik,cil,c->ckl", gradients, gradients, volumes)

comm.Barrier()
start = PETSc.Log.getTime()
A = plex.createMatrix()
A.setOption(PETSc.Mat.Option.NEW_NONZERO_ALLOCATION_ERR, False)
for nodes, matrix in zip(cells.astype(np.int32), ke):
    A.setValuesLocal(nodes, nodes, matrix, addv=True)
A.assemble()
f, local = plex.createGlobalVec(), plex.createLocalVec()
np.add.at(local.array, cells, volumes[:, None] / 4)
plex.localToGlobal(local, f, addv=True)
local.array[:] = x[:, 0] < 1e-9  # fixed at x = 0
fixed = plex.createGlobalVec()
plex.localToGlobal(local, fixed)
begin, _ = fixed.getOwnershipRange()
A.zeroRowsColumns(np.flatnonzero(fixed.array).astype(np.int32) + begin, 1.0, fixed * 0, f)

solver, u = PETSc.KSP().create(comm), f.duplicate()
solver.setOperators(A)
solver.setType("cg")
solver.getPC().setType("jacobi")
solver.setTolerances(rtol=1e-8)
solver.solve(f, u)
seconds = max(comm.allgather(PETSc.Log.getTime() - start))

sizes = comm.gather(last - first)
energy = u.dot(f)
if comm.rank == 0:
    print(f"cells {sizes} iterations {solver.getIterationNumber()} energy {energy:.6g} seconds {seconds:.3f}")
