"""What the machine is and does, and how programs are started on it."""
