"""Ferreira (2006) repeated: phases of a parallel finite-element
program on fast and slow hosts."""
