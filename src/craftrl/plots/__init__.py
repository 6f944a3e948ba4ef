"""Figures, drawn from numbers already computed."""
