"""The programs that can be measured, the copy from which a new one starts, and the amount of code of each."""
