"""Analytic prediction of farm applications with intervals, measured again."""
