"""The exact engine: bit planes, compiled counting, and exact losses of all pairs of encoders, here or on Ray."""
