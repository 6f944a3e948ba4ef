"""The reliability campaign: damaged files, arguments that make no sense, commands that are killed.

`make campaign` runs all of it and prints one table; a small part with fixed seeds runs in the tests. Nothing here is
part of the installed package.
"""
