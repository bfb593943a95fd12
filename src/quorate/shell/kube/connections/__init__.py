"""How bytes travel: pooled connections, sessions, TLS, and whether anybody answers."""
