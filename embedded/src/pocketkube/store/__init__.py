"""Objects by key, revisions and watches; in memory or in a file."""
