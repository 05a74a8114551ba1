"""Small parallel programs of the source theses under MPI: no prediction is fitted to one code alone."""
