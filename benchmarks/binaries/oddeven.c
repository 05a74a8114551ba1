/* Odd-even transposition sort: every rank sorts its share of N numbers, then merges with its neighbours. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b){
  int x = *(const int *)a, y = *(const int *)b;
  return (x > y) - (x < y);
}

/* Keep the lower or the upper half of two sorted lists. */
static void merge(int *mine, const int *theirs, int *work, int n, int lower){
  if(lower)
    for(int i = 0, a = 0, b = 0; i < n; i++) work[i] = mine[a] <= theirs[b] ? mine[a++] : theirs[b++];
  else
    for(int i = n - 1, a = n - 1, b = n - 1; i >= 0; i--) work[i] = mine[a] >= theirs[b] ? mine[a--] : theirs[b--];
  memcpy(mine, work, n * sizeof *mine);
}

int main(int argc, char **argv){
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int n = (argc > 1 ? atoi(argv[1]) : 100000) / size;
  int *mine = malloc(n * sizeof *mine), *theirs = malloc(n * sizeof *theirs), *work = malloc(n * sizeof *work);
  srand(1 + rank);
  for(int i = 0; i < n; i++) mine[i] = rand();
  qsort(mine, n, sizeof *mine, compare);
  for(int phase = 0; phase < size; phase++){
    int partner = (phase + rank) % 2 ? rank - 1 : rank + 1;
    if(partner < 0 || partner >= size) continue;
    MPI_Sendrecv(mine, n, MPI_INT, partner, 0, theirs, n, MPI_INT, partner, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    merge(mine, theirs, work, n, rank < partner);
  }
  int wrong = 0, all = 0, last;
  for(int i = 1; i < n; i++) wrong += mine[i - 1] > mine[i];
  if(rank < size - 1) MPI_Send(&mine[n - 1], 1, MPI_INT, rank + 1, 1, MPI_COMM_WORLD);
  if(rank > 0){
    MPI_Recv(&last, 1, MPI_INT, rank - 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    wrong += last > mine[0];
  }
  MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if(rank == 0) printf("%s\n", all ? "NOT SORTED" : "sorted");
  MPI_Finalize();
  return all != 0;
}
