"""Who yields to whom: bound pods by priority, nominated pods, disruption budgets."""
