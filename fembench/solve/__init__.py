"""Operators, preconditioners, conjugate gradients."""
