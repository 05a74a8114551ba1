/* Laplace's equation on an N x N grid by Jacobi sweeps, rows shared out; stops at a tolerance or after SWEEPS. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv){
  int rank, size, n, sweeps, k = 0;
  double change = 1.0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if(argc < 3){
    if(rank == 0) fprintf(stderr, "usage: %s N SWEEPS\n", argv[0]);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  n = atoi(argv[1]);
  sweeps = atoi(argv[2]);
  int rows = n / size + (rank < n % size);
  double *u = calloc((rows + 2) * (size_t)(n + 2), sizeof *u), *v = calloc((rows + 2) * (size_t)(n + 2), sizeof *v);
  if(!u || !v) MPI_Abort(MPI_COMM_WORLD, 1);
  if(rank == 0) for(int j = 0; j < n + 2; j++) u[j] = v[j] = 1.0; /* the hot edge */
  int up = rank > 0 ? rank - 1 : MPI_PROC_NULL, down = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
  for(; k < sweeps && change > 1e-9; k++){
    double mine = 0.0;
    MPI_Sendrecv(u + (n + 2), n + 2, MPI_DOUBLE, up, 1, u + (rows + 1) * (n + 2), n + 2, MPI_DOUBLE, down, 1,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(u + rows * (n + 2), n + 2, MPI_DOUBLE, down, 2, u, n + 2, MPI_DOUBLE, up, 2, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    for(int i = 1; i <= rows; i++)
      for(int j = 1; j <= n; j++){
        double *at = u + i * (n + 2) + j, new = 0.25 * (at[-1] + at[1] + at[-(n + 2)] + at[n + 2]);
        double d = fabs(new - *at);
        if(d > mine) mine = d;
        v[i * (n + 2) + j] = new;
      }
    double *swap = u; u = v; v = swap;
    MPI_Allreduce(&mine, &change, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  }
  if(rank == 0) printf("%d sweeps, last change %g\n", k, change);
  free(u); free(v);
  MPI_Finalize();
  return 0;
}
