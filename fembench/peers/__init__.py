"""The same linear system solved by other packages, for comparison."""
