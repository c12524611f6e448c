"""Tools that examine the machine and the generator themselves."""
