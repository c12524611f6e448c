"""Everything that was found, and every trial, for other programs."""
