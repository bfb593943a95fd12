"""quorate: gang scheduling for Kubernetes. Every pod that a job needs starts, or none does."""

__version__ = "0.1.0"

DISTRIBUTION = "quorate-scheduler"
"""What ``pip install`` calls us: another program has our own name."""
