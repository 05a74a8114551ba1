/* A pipeline: blocks of a signal pass through all ranks, each of which applies its own filter to them. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { LENGTH = 4096, TAPS = 128 };

int main(int argc, char **argv){
  int rank, size;
  static double block[LENGTH + TAPS], out[LENGTH], tap[TAPS];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int blocks = argc > 1 ? atoi(argv[1]) : 100;
  for(int k = 0; k < TAPS; k++) tap[k] = exp(-0.5 * (k - rank) * (k - rank) / 9.0) / 8.0;
  double energy = 0.0;
  for(int b = 0; b < blocks; b++){
    if(rank == 0) for(int i = 0; i < LENGTH; i++) block[TAPS + i] = sin(0.001 * (b * LENGTH + i));
    else MPI_Recv(block + TAPS, LENGTH, MPI_DOUBLE, rank - 1, b, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for(int i = 0; i < LENGTH; i++){
      double sum = 0.0;
      for(int k = 0; k < TAPS; k++) sum += tap[k] * block[TAPS + i - k];
      out[i] = sum;
      energy += sum * sum;
    }
    for(int i = 0; i < TAPS; i++) block[i] = block[LENGTH + i];
    if(rank < size - 1) MPI_Send(out, LENGTH, MPI_DOUBLE, rank + 1, b, MPI_COMM_WORLD);
  }
  if(rank == size - 1) printf("energy %g\n", energy);
  MPI_Finalize();
  return 0;
}
