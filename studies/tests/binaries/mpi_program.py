"""Programs compiled with mpicc for the tests of binaries."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
COMPILER = shutil.which("mpicc", path=PATH)
HEAD = "#include <mpi.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
BEGIN = """
int main(int argc, char **argv){
  int rank, size;
  MPI_Init(&argc, &argv); MPI_Comm_rank(MPI_COMM_WORLD, &rank); MPI_Comm_size(MPI_COMM_WORLD, &size);
"""
END = " MPI_Finalize(); return 0; }"
FARM = """
static void answer(double *x, int to){ MPI_Send(x, 3, MPI_DOUBLE, to, 7, MPI_COMM_WORLD); }
static double table[64][64];
int main(int argc, char **argv){
  int rank, size, n; double x[3] = {1, 2, 3};
  MPI_Init(&argc, &argv);
  if(argc != 2){ printf("usage: farm N\\n"); MPI_Abort(MPI_COMM_WORLD, 2); }
  n = atoi(argv[1]);
  if(n < 1 || n > 64) return 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if(rank != 0){
    MPI_Recv(x, 3, MPI_DOUBLE, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for(int i = 0; i < n; i++) for(int j = 0; j <= i; j++) table[i][j] += x[0] * j;
    x[0] = table[n - 1][1];
    answer(x, 0);
  } else {
    for(int p = 1; p < size; p++) answer(x, p);
    for(int p = 1; p < size; p++) MPI_Recv(x, 3, MPI_DOUBLE, p, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  MPI_Finalize();
  return 0;
}
"""


def compiled(folder, source, *options):
    """The executable of a source."""
    if not (COMPILER and shutil.which("objdump")):
        pytest.skip("no mpicc or objdump")
    (folder / "a.c").write_text(HEAD + source)
    words = [COMPILER, *(options or ("-O1",)), "-o", str(folder / "a"), str(folder / "a.c"), "-lm"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if "mpi.h" in done.stderr:
        pytest.skip("mpicc without mpi.h")
    assert done.returncode == 0, done.stderr
    return folder / "a"
