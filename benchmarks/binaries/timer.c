/* Loaded before an MPI program: prints the seconds from MPI_Init to MPI_Finalize of the slowest rank. */
#include <mpi.h>
#include <stdio.h>

static double begin;

int MPI_Init(int *count, char ***words){
  int status = PMPI_Init(count, words);
  PMPI_Barrier(MPI_COMM_WORLD);
  begin = PMPI_Wtime();
  return status;
}

int MPI_Finalize(void){
  int rank;
  double mine = PMPI_Wtime() - begin, most;
  PMPI_Reduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if(rank == 0) fprintf(stderr, "timed %.9f s\n", most);
  return PMPI_Finalize();
}
