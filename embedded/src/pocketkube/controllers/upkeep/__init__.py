"""What keeps a cluster in order: garbage, namespaces, accounts, lost nodes, disruption budgets."""
