"""The parts that client contestants in Python share (protocol/client.md): everything except the loop."""
