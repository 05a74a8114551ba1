"""Emulated slowness and labs of network namespaces: their results are labelled SYNTHETIC."""
