"""Which nodes a cluster has: files that describe pools of nodes, and presets of real clusters.

``shape_file`` reads a file or a preset and gives Node objects; ``patterns`` are texts with numbers
filled in for each node; ``presets/`` are such files. docs/users/shapes.md describes the format.
"""
