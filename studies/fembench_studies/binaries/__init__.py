"""Execution graphs of compiled master/slave MPI programs, from their disassembly."""
