"""Claims to verdicts."""
