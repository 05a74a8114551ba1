"""Prediction of runs: workload, HLogP, graph, simulation, closed form, placement."""
