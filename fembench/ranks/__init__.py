"""One rank's share of the mesh, and its neighbours: the mpi4py door, Subdomain, Interface."""
