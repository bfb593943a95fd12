"""Where alike pods go: as many of one class as the nodes take, all at once or domain by domain."""
