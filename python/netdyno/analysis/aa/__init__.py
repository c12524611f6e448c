"""The A/A control."""
