"""The cluster as it is known: nodes as arrays, pods, gangs."""
