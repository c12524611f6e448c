"""The gate: whether one server is worse than another by more than a margin."""
