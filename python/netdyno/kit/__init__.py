"""The basis of all packages: errors, paths, units, quantities in words; and numbers in, numbers out."""
