"""alpha, eta and nu: known, off by a factor of 2 either way, or chosen from the data."""
