"""What a client contestant in Python shares with others (protocol/client.md): everything that is not its loop."""
