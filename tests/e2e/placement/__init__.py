"""Where pods go: contention, preemption, volumes, devices, beside or instead of kube-scheduler."""
