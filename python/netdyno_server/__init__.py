"""What servers in Python share: options, sessions, the first and the last line. How they serve is their own."""
