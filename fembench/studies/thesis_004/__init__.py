"""The parallel finite-element study (Ferreira 2006), measured again: its tables with both numbers."""
