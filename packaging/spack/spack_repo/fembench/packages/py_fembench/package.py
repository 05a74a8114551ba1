# ruff: noqa: F403, F405, I001
from pathlib import Path

from spack_repo.builtin.build_systems.python import PythonPackage

from spack.package import *

CLONE = Path(__file__).resolve().parents[6]


class PyFembench(PythonPackage):
    """A parallel finite-element benchmark for clusters with unequal hosts.

    Builds what is committed in the clone that holds this recipe."""

    git = CLONE.as_uri()

    license("BSD-3-Clause")

    version("main", branch="main")

    variant("report", default=True, description="Draw the plots and the HTML page of a report")

    depends_on("c", type="build")
    depends_on("cmake@3.18:", type="build")
    depends_on("ninja", type="build")
    depends_on("python@3.10:", type=("build", "link", "run"))
    depends_on("py-scikit-build-core@0.10:", type="build")
    depends_on("py-cython@3.0.10:", type="build")
    depends_on("py-shtab@1.9:", type="build")
    depends_on("py-msgspec@0.18:", type=("build", "run"))
    depends_on("py-mpi4py@4.0:", type="run")
    depends_on("py-numpy", type="run")
    depends_on("py-meshio", type="run")
    depends_on("py-pymetis@2025.2:", type="run")
    depends_on("py-scipy", type="run")
    depends_on("py-tomli", type="run", when="^python@:3.10")
    with when("+report"):
        depends_on("py-jinja2", type="run")
        depends_on("py-markupsafe", type="run")
        depends_on("py-matplotlib", type="run")
