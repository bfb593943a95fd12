"""Rules and scores about what nodes are: labels, taints, features."""
