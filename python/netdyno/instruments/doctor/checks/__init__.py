"""The checks, by what they look at. Each module registers its own (finding.check)."""
