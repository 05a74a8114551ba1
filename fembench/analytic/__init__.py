"""Prediction in closed form (thesis-000): intervals, operation costs, PAMELA, bounds by resource."""
