"""Findings in sentences, the same for terminal and report."""
