"""Gangs that did not fit, by the news that wakes them: free capacity, labels, claims."""
