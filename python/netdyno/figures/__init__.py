"""Figures that an experiment asks for: read from its file, then filled from a run."""
