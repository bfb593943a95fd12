"""CoreWeave's workload rules, as components that one switches on beside the scheduler."""
