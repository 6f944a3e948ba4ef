"""Accuracy against the number of trajectories, independent and chained.

Paper: Section 4 (the world and its scoring); the chain is ours
"""
