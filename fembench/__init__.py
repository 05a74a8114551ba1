"""fembench: a parallel finite-element benchmark for clusters whose nodes may be unequal."""
