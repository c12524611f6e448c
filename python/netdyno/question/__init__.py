"""A question: the way from an experiment's TOML and the manifests of contestants to the cells of a plan."""
