"""Emulated slowness and labs of network namespaces: everything whose results are labelled SYNTHETIC."""
