"""Schedulers come and go: restarts, replicas and leases."""
