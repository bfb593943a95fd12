"""How bytes travel: pooled connections, sessions, TLS, proxies, and whether anybody answers."""
