"""The figures drawn from a run."""
