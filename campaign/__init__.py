"""The reliability campaign: damaged files, odd arguments, commands that are stopped or have no room."""
