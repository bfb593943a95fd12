"""Claims of volumes and of devices: made for pods, bound, kept while in use, and freed."""
