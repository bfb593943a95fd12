"""Pods that run for ever: Deployments, ReplicaSets, StatefulSets and DaemonSets."""
