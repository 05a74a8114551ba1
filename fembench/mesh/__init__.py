"""Mesh, box generators, the meshio door, adjacency, quality."""
