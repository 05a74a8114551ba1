/* pi from N random points: how many lie in the quarter circle. */
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t state;
static double uniform(void){
  state ^= state << 13; state ^= state >> 7; state ^= state << 17;
  return (state >> 11) * 0x1p-53;
}

int main(int argc, char **argv){
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  long n = argc > 1 ? strtol(argv[1], NULL, 10) : 1000000, inside = 0, all = 0;
  state = 88172645463325252ull + 7919 * rank;
  for(long i = rank; i < n; i += size){
    double x = uniform(), y = uniform();
    if(x * x + y * y < 1.0) inside++;
  }
  MPI_Reduce(&inside, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if(rank == 0) printf("pi is about %.6f, off by %.1e\n", 4.0 * all / n, fabs(4.0 * all / n - M_PI));
  MPI_Finalize();
  return 0;
}
