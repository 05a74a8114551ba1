/* The integral of a square root by trapezoids: a master, and slaves with equal intervals. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double root(double a){ /* Newton's method, until it is exact */
  double x = a, error;
  do {
    double next = 0.5 * (x + a / x);
    error = x - next;
    x = next;
  } while(error > 1e-12 * x);
  return x;
}

static double integral(double from, double to, int n){
  double h = (to - from) / n, sum = 0.5 * (root(from) + root(to));
  for(int i = 1; i < n; i++) sum += root(from + i * h);
  return sum * h;
}

int main(int argc, char **argv){
  int rank, size, n;
  double points[2], part = 0.0, total = 0.0;
  MPI_Init(&argc, &argv);
  if(argc != 2){
    fprintf(stderr, "usage: integral TRAPEZOIDS\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Barrier(MPI_COMM_WORLD);
  double t = MPI_Wtime();
  clock_t used = clock();
  n = atoi(argv[1]);
  if(rank == 0){
    double h = 400.0 / (size - 1);
    points[0] = 100.0;
    points[1] = 100.0 + h;
    for(int i = 1; i < size; i++){
      MPI_Send(points, 2, MPI_DOUBLE, i, 0, MPI_COMM_WORLD);
      points[0] = points[1];
      points[1] += h;
    }
    for(int i = 1; i < size; i++){
      MPI_Recv(&part, 1, MPI_DOUBLE, i, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      total += part;
    }
  } else {
    MPI_Recv(points, 2, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    part = integral(points[0], points[1], n);
    MPI_Send(&part, 1, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD);
  }
  printf("rank %d: %.6f s, %.6f s of processor, %g\n", rank, MPI_Wtime() - t, 1e-6 * (clock() - used), total);
  MPI_Finalize();
  return 0;
}
