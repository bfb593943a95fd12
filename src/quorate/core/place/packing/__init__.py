"""Places pods of one class: as many as the nodes take, all at once or domain by domain."""
