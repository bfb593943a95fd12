"""Records the structure of a real kube-apiserver's API for the embedded cluster.

In: the control plane that tools/controlplane builds, and Go. Out: ``recorded.json.xz``, which
``quorate.embedded.schema.document`` reads. Called by people: ``make record``.
"""
