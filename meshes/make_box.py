"""Make the unstructured tetrahedral meshes of the thesis' box, 1.0 x 0.5 x 1.0 m, near its three sizes.

    pip install gmsh
    python meshes/make_box.py

On a bare machine Gmsh also wants: apt install libglu1-mesa libxrender1 libxcursor1 libxft2 libxinerama1

Writes thesis1.msh, thesis2.msh and thesis3.msh beside this file: Gmsh's format 4.1, text, with the
six faces as named physical surfaces x0 x1 y0 y1 z0 z1 and the body as the physical volume solid.

The thesis has 3.7 to 4.6 elements a node, more than a uniform mesh of this few nodes gives: its
surfaces are coarser than its inside. So there are two sizes, found by trying a grid of them against
the thesis' nodes, elements and equations.
"""

from pathlib import Path

import gmsh

EDGES = (1.0, 0.5, 1.0)
FACES = ("x0", "x1", "y0", "y1", "z0", "z1")
# name: (size of elements on the surface, inside), metres; the thesis' nodes / elements / equations
SIZES = {
    "thesis1": (0.27, 0.1323),  # 233 / 855 / 618
    "thesis2": (0.1028, 0.0792),  # 933 / 4014 / 2577
    "thesis3": (0.0768, 0.0614),  # 1984 / 9126 / 5565
}
OPTIONS = {
    "General.Terminal": 0,
    "General.NumThreads": 1,  # with one thread the mesh is the same every time
    "Mesh.Algorithm": 5,  # Delaunay on the faces
    "Mesh.Algorithm3D": 1,  # Delaunay inside
    "Mesh.MeshSizeExtendFromBoundary": 0,
    "Mesh.MshFileVersion": 4.1,
    "Mesh.Binary": 0,
}


def main() -> None:
    gmsh.initialize()
    for option, value in OPTIONS.items():
        gmsh.option.setNumber(option, value)
    for name, (surface, inside) in SIZES.items():
        make(name, surface, inside)
        gmsh.write(str(Path(__file__).with_name(f"{name}.msh")))
        nodes = len(gmsh.model.mesh.getNodes()[0])
        cells = sum(len(tags) for tags in gmsh.model.mesh.getElements(3)[1])
        print(f"{name}: {nodes} nodes, {cells} tetrahedra")
    gmsh.finalize()


def make(name: str, surface: float, inside: float) -> None:
    """Geometry, physical groups and mesh in Gmsh's current model."""
    gmsh.clear()
    gmsh.model.add(name)
    body = gmsh.model.occ.addBox(0, 0, 0, *EDGES)
    gmsh.model.occ.synchronize()
    for face, tag in faces():
        gmsh.model.addPhysicalGroup(2, [tag], name=face)
    gmsh.model.addPhysicalGroup(3, [body], name="solid")
    field = gmsh.model.mesh.field
    size = field.add("MathEval")
    field.setString(size, "F", str(inside))
    within = field.add("Restrict")  # without its boundary
    field.setNumber(within, "InField", size)
    field.setNumbers(within, "VolumesList", [body])
    field.setNumber(within, "IncludeBoundary", 0)
    field.setAsBackgroundMesh(within)
    gmsh.option.setNumber("Mesh.MeshSizeMax", surface)
    gmsh.model.mesh.generate(3)


def faces() -> list[tuple[str, int]]:
    """(name, surface) for the six faces, told apart by their centres of mass."""
    found = []
    for _, tag in gmsh.model.getEntities(2):
        centre = gmsh.model.occ.getCenterOfMass(2, tag)
        for axis, edge in enumerate(EDGES):
            for side, plane in enumerate((0.0, edge)):
                if abs(centre[axis] - plane) < 1e-9:
                    found.append((FACES[2 * axis + side], tag))
    return sorted(found)


if __name__ == "__main__":
    main()
