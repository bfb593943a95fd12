"""The I/O around the core: Kubernetes on one side, changes and plans on the other."""
