"""CoreWeave's workload rules on the real control plane, for users who have only their rights."""
