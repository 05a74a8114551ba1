"""The compiled kernels and the plain reference twin of each."""
