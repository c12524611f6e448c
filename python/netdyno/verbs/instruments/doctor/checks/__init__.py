"""The checks, by subject. Each module registers its own (finding.check)."""
