"""The output for a terminal."""
