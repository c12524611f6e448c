"""Numbers in, numbers out: nothing here knows a trial."""
