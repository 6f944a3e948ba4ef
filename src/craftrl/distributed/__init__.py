"""Networks on a Ray cluster."""
