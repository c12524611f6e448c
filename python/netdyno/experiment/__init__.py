"""The way from an experiment's TOML to the cells of its plan."""
