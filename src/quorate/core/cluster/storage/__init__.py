"""Volumes, claims and storage classes, and which nodes use which volume."""
