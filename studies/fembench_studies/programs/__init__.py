"""Small parallel programs under MPI: farms and task graphs, their
calibration and predictions."""
