"""Nodes as rows, resources as columns, labels and taints as codes."""
