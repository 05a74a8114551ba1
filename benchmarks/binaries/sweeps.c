/* Relaxation of a grid: nested loops over rows that neighbours exchange, and a reduction. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#define N 64

static double old[N + 2][N + 2], new[N + 2][N + 2];

static double relax(int first, int last){
  double change = 0.0;
  for(int i = first; i <= last; i++)
    for(int j = 1; j <= N; j++){
      new[i][j] = 0.25 * (old[i - 1][j] + old[i + 1][j] + old[i][j - 1] + old[i][j + 1]);
      double d = new[i][j] - old[i][j];
      change += d * d;
    }
  for(int i = first; i <= last; i++)
    for(int j = 1; j <= N; j++) old[i][j] = 0.5 * (old[i][j] + new[i][j]);
  return change;
}

int main(int argc, char **argv){
  int rank, size, sweeps = 40;
  double change = 0.0, all = 0.0;
  MPI_Init(&argc, &argv);
  if(argc > 1) sweeps = atoi(argv[1]);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Barrier(MPI_COMM_WORLD);
  double t = MPI_Wtime();
  clock_t used = clock();
  int first = 1 + rank * N / size, last = (rank + 1) * N / size;
  for(int i = 0; i < N + 2; i++)
    for(int j = 0; j < N + 2; j++) old[i][j] = i + j % 5;
  for(int k = 0; k < sweeps; k++){
    if(rank > 0)
      MPI_Sendrecv(&old[first][1], N, MPI_DOUBLE, rank - 1, 0, &old[first - 1][1], N, MPI_DOUBLE, rank - 1, 0,
                   MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if(rank < size - 1)
      MPI_Sendrecv(&old[last][1], N, MPI_DOUBLE, rank + 1, 0, &old[last + 1][1], N, MPI_DOUBLE, rank + 1, 0,
                   MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for(int r = 0; r < 100; r++) change = relax(first, last);
    MPI_Allreduce(&change, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
  printf("rank %d: %.6f s, %.6f s of processor, %g\n", rank, MPI_Wtime() - t, 1e-6 * (clock() - used), all);
  MPI_Finalize();
  return 0;
}
