"""What a reader must know beside a ranking."""
