"""Prediction of runs: workload, HLogP costs, execution graph, simulation, closed form, placement, score."""
