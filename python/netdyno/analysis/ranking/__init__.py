"""The ranking of a question and the figures behind it."""
