"""The links between load and server: loopback, a private network, a relay."""
