"""What quorate may do, and what it does without a right."""
