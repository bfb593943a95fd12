"""What preemption reads of pods: bound pods by priority, nominated pods, disruption budgets."""
