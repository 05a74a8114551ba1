"""The same linear system solved by other codes, for comparison."""
