"""Where along a factor the better of two sides changes."""
