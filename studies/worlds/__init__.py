"""How many trajectories exact CRAFT needs in the combination lock and in the multi-maze."""
