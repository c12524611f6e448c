"""A client to talk to a chat server by hand."""
