"""More data than one machine: fits that count where the shards are, and what they cost."""
