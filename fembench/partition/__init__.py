"""Target shares, Partition and its metrics, the pymetis door, coordinate bisection."""
