"""The highest rate at which a server meets an objective: asked of one server, or of all as the metric of a scenario."""
