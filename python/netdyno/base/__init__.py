"""What every room may use: errors, paths, units, quantities in words."""
