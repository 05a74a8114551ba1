"""Prediction of runs: workload, HLogP, execution graph, simulation, closed form, placement."""
