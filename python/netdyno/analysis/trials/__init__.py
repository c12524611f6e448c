"""What of a run counts."""
