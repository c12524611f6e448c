"""The output of a run, for people and programs."""
