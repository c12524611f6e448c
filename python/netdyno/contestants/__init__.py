"""The programs that can be measured, the start of a new contestant, and the amount of code of each."""
