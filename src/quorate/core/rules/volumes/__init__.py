"""Rules about volumes: what a node reaches, mounts and takes of them."""
