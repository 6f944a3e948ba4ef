"""Studies: each a folder of spec (which runs), run (one run) and analysis (rows to table and picture)."""
