"""The simulated side: an API server without HTTP, the network to it, nodes."""
