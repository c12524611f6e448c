"""Every sentence that a person can be shown, on one page."""
