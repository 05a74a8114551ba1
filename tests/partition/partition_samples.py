"""Meshes and counts by brute force for the tests of `partition`."""

from fembench.mesh.elements import element_named


def clamped(mesh):
    """(n_nodes,) bool: the nodes on x = 0."""
    return mesh.x[:, 0] < 1e-9


def sharers_by_brute_force(mesh, part_of_cell):
    """For each node, the set of parts that touch it."""
    sharers = [set() for _ in range(mesh.n_nodes)]
    for cell, part in zip(mesh.cells.tolist(), part_of_cell.tolist()):
        for node in cell:
            sharers[node].add(part)
    return sharers


def pairs_by_brute_force(mesh, part_of_cell, part):
    """The ordered pairs (node, node) that the cells of a part join, each with itself too."""
    cells = mesh.cells[part_of_cell == part].tolist()
    return {(a, b) for cell in cells for a in cell for b in cell}


def cut_by_brute_force(mesh, part_of_cell):
    """Facets between cells of different parts."""
    owners = {}
    for cell, part in zip(mesh.cells.tolist(), part_of_cell.tolist()):
        for facet in element_named(mesh.element).facets.tolist():
            owners.setdefault(frozenset(cell[i] for i in facet), []).append(part)
    return sum(len(parts) == 2 and parts[0] != parts[1] for parts in owners.values())
