"""Ask kube-scheduler's own plugins what they say about a pod.

``oracle.go`` files: a program around the plugins of kube-scheduler, one case per line in, one
answer per line out. ``build``: makes it, once, into the cache. ``asking``: runs it and asks.
What a case and an answer hold: ``case.go`` and ``answer.go``, and ``docs/maintainers/oracle.md``.
"""

from tools.oracle.asking import Oracle, OracleError

__all__ = ["Oracle", "OracleError"]
