"""Kernels of a rank whose vectors and matrix lie on a device: a GPU, or any of OpenCL."""
