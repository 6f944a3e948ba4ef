"""Studies that go past the paper: one folder each, run by `craftrl reproduce NAME` from a clone."""
