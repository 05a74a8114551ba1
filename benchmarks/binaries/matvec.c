/* The largest eigenvalue of a symmetric matrix by power iteration, the matrix shared out by rows. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv){
  int rank, size, k;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int rows = (argc > 1 ? atoi(argv[1]) : 400) / size, n = rows * size, turns = argc > 2 ? atoi(argv[2]) : 100;
  double *a = malloc(sizeof *a * rows * n), *x = malloc(sizeof *x * n), *y = malloc(sizeof *y * rows), norm = 0.0;
  for(int i = 0; i < rows; i++)
    for(int j = 0; j < n; j++) a[i * n + j] = 1.0 / (1.0 + abs(rank * rows + i - j));
  for(int j = 0; j < n; j++) x[j] = 1.0;
  for(k = 0; k < turns; k++){
    double sum = 0.0, all;
    for(int i = 0; i < rows; i++){
      double t = 0.0;
      for(int j = 0; j < n; j++) t += a[i * n + j] * x[j];
      y[i] = t;
      sum += t * t;
    }
    MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    norm = sqrt(all);
    for(int i = 0; i < rows; i++) y[i] /= norm;
    MPI_Allgather(y, rows, MPI_DOUBLE, x, rows, MPI_DOUBLE, MPI_COMM_WORLD);
  }
  if(rank == 0) printf("eigenvalue %.12g after %d turns\n", norm, k);
  MPI_Finalize();
  return 0;
}
