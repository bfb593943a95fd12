"""What the tests here run with: clusters, schedulers, kubelets, proxies, manifests, invariants."""
