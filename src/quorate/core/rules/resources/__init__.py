"""Rules and scores about what pods use of a node: resources and host ports."""
