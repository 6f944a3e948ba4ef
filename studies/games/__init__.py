"""CRAFT and its rivals in worlds that others made: Atari, MiniGrid, ViZDoom."""
