"""All findings of a run, and every trial, for other programs."""
