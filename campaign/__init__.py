"""The reliability campaign: damaged files, odd arguments, commands that are stopped or have no room.

`make campaign` runs all of it; a small part with fixed seeds runs in the tests. It is no part of the installed package.
"""
