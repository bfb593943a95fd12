"""What the server knows of each resource, and the rules of single kinds."""
