"""Algorithm 2 and its parts, pure: grid, losses, clusters, merging, the loop, and the record of what it decided."""
