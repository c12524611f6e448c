"""Of a workload: whom to take, how far that may be from the best, and where the answer changes."""
