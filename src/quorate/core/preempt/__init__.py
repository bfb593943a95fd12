"""Who yields to whom: victims for a pod that fits nowhere."""
