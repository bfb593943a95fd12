"""Which pods are where, by labels: what spread and affinity count, and a ledger to check with."""
