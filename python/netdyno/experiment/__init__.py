"""From an experiment's TOML to the cells of its plan."""
