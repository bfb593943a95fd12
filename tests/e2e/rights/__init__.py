"""What quorate may do, what it does without a right, and the guard that keeps others out."""
