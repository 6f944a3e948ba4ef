"""What broken assumptions cost, and whether label-free diagnostics notice."""
