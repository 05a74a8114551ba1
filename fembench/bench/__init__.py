"""One case under MPI, measured and verified; campaigns of many cases."""
