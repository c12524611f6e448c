"""A run to findings: numbers and names, no sentences."""
