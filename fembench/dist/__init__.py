"""The mpi4py door, Subdomain, Interface: one rank's share of the mesh and its neighbours."""
