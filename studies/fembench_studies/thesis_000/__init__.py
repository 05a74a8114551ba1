"""Herai (2005) repeated: interval predictions of farm applications."""
