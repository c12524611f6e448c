"""The machine, its activity, and the start of programs on it."""
