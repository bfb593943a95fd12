"""Which gang is next, and what each of the others waits for."""
