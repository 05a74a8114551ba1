"""Execution graphs as the sources used them: reduced, measured, exported, on the machine of a modeller."""
