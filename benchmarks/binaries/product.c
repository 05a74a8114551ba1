/* The product of two matrices, several times: the master sends rows of one to the slaves, which know the other. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void product(const double *a, const double *b, double *c, int rows, int n){
  for(int i = 0; i < rows; i++)
    for(int k = 0; k < n; k++){
      double factor = a[i * n + k];
      for(int j = 0; j < n; j++) c[i * n + j] += factor * b[k * n + j];
    }
}

int main(int argc, char **argv){
  int rank, size, n, times, rows;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if(argc != 3){
    if(rank == 0) fprintf(stderr, "usage: product N TIMES\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Barrier(MPI_COMM_WORLD);
  double t = MPI_Wtime();
  clock_t used = clock();
  n = atoi(argv[1]);
  times = atoi(argv[2]);
  double *a = malloc(sizeof(double) * n * n), *b = malloc(sizeof(double) * n * n);
  double *c = malloc(sizeof(double) * n * n);
  for(int i = 0; i < n * n; i++){
    a[i] = i % 7;
    b[i] = i % 5;
    c[i] = i % 3; /* zeros would be set by memset */
  }
  if(rank == 0){
    rows = n / (size - 1);
    for(int p = 1; p < size; p++){
      MPI_Send(&rows, 1, MPI_INT, p, 0, MPI_COMM_WORLD);
      MPI_Send(a + (p - 1) * rows * n, rows * n, MPI_DOUBLE, p, 1, MPI_COMM_WORLD);
    }
    for(int p = 1; p < size; p++)
      MPI_Recv(c + (p - 1) * rows * n, rows * n, MPI_DOUBLE, p, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    MPI_Recv(&rows, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(a, rows * n, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for(int k = 0; k < times; k++) product(a, b, c, rows, n);
    MPI_Send(c, rows * n, MPI_DOUBLE, 0, 2, MPI_COMM_WORLD);
  }
  printf("rank %d: %.6f s, %.6f s of processor, %g\n", rank, MPI_Wtime() - t, 1e-6 * (clock() - used), c[n + 1]);
  MPI_Finalize();
  return 0;
}
