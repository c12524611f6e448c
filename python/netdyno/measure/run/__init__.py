"""A run: its trials in their order, each stored before the next starts."""
