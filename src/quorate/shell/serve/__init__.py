"""What we answer over HTTP: health and metrics."""
