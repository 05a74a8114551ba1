/* A Mandelbrot set of N x N points: the master hands out rows, and whoever returns one gets the next. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 300, STOP = 0, ROW = 1 };

static void compute(int row, int n, int *steps){
  double cy = -1.25 + 2.5 * row / n;
  for(int j = 0; j < n; j++){
    double cx = -2.0 + 2.5 * j / n, x = 0.0, y = 0.0;
    int k = 0;
    while(k < MOST && x * x + y * y < 4.0){
      double next = x * x - y * y + cx;
      y = 2.0 * x * y + cy;
      x = next;
      k++;
    }
    steps[j] = k;
  }
}

int main(int argc, char **argv){
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int n = argc > 1 ? atoi(argv[1]) : 200, *steps = malloc((n + 1) * sizeof *steps);
  MPI_Status status;
  if(rank == 0){
    int next = 0, busy = 0;
    long sum = 0;
    for(int p = 1; p < size && next < n; p++, next++, busy++) MPI_Send(&next, 1, MPI_INT, p, ROW, MPI_COMM_WORLD);
    while(busy > 0){
      MPI_Recv(steps, n, MPI_INT, MPI_ANY_SOURCE, ROW, MPI_COMM_WORLD, &status);
      for(int j = 0; j < n; j++) sum += steps[j];
      if(next < n){ MPI_Send(&next, 1, MPI_INT, status.MPI_SOURCE, ROW, MPI_COMM_WORLD); next++; }
      else busy--;
    }
    for(int p = 1; p < size; p++) MPI_Send(&next, 1, MPI_INT, p, STOP, MPI_COMM_WORLD);
    printf("%ld steps in all\n", sum);
  } else {
    for(;;){
      int row;
      MPI_Recv(&row, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
      if(status.MPI_TAG == STOP) break;
      compute(row, n, steps);
      MPI_Send(steps, n, MPI_INT, 0, ROW, MPI_COMM_WORLD);
    }
  }
  free(steps);
  MPI_Finalize();
  return 0;
}
