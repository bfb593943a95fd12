"""Records the core's inputs and outputs in a file that can be replayed."""
