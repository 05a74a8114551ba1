"""Execution graphs as the sources used them: measured, exported,
on the machine of a modeller."""
