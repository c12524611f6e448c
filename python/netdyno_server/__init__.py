"""The parts that servers in Python share: options, sessions, the first and the last line. Their loops are their own."""
