"""Storages, preconditioners and recurrences of CG: what each is and costs."""
