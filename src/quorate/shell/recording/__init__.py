"""What entered the core and what came out, as a file that can be replayed."""
