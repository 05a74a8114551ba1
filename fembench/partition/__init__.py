"""Target shares, Partition and its metrics, the pymetis door, recursive coordinate bisection."""
