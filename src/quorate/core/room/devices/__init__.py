"""Which devices the claims of a pod get, as kube-scheduler's allocator chooses them."""
