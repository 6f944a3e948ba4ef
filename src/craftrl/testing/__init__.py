"""Contract tests for whoever writes an oracle, a world or a learner."""
