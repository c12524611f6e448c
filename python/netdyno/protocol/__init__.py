"""The bytes between load and server."""
