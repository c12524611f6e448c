"""Claims: published sentences as tests over measured cells, with a verdict from data (docs/experiments.md)."""
