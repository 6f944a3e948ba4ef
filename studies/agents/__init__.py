"""What more agents are worth at the same total number of trajectories.

Paper: Section 2.3 ("straightforwardly generalized to support more agents")
"""
