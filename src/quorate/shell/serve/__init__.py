"""What we answer over HTTP: health, metrics, the admission guard."""
