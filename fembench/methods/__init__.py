"""Storages, preconditioners and variants of CG: what each is and costs."""
