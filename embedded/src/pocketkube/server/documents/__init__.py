"""What the server says of itself: discovery, OpenAPI documents, health and version."""
