"""Task graphs on unequal hosts: HEFT, CPOP and other schedulers."""
