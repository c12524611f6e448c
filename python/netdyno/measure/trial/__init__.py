"""One trial: programs started, loaded, watched and ended."""
