"""PASL and PAMELA: task graphs, operation counts, bounds by resource, and
a park of virtual machines."""
