"""One pod more: what each node says of it, and which is best, as kube-scheduler decides."""
