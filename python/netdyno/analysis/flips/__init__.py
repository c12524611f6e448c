"""The places along a factor where the better of two sides changes."""
