"""Prediction before a run: HLogP prices, workload, execution graph, simulation, placement, score."""
