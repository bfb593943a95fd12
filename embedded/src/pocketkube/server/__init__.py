"""HTTP and TLS: paths, bodies, watch streams, discovery, Tables."""
