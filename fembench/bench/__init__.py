"""One case under MPI, verified; the launcher; campaigns."""
