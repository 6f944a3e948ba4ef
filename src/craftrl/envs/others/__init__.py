"""Worlds that others made, as `GymWorld`s: Atari games, MiniGrid, ViZDoom. They need the extra `worlds`.

Each module needs the package of its own world alone, which is imported when a world is made.
"""
