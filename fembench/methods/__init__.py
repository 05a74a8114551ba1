"""Storages, preconditioners and variants of conjugate gradients: what each is and what an iteration costs."""
