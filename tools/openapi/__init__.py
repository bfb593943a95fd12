"""Records the structure of a real kube-apiserver's API for the embedded cluster.

In: the control plane that tools/controlplane builds, and Go. Out: ``recorded.json.xz``, which
``pocketkube.schema.document`` reads. Called by people: ``make record``. ``gotypes`` asks Go
about its types; ``gosamples`` has it encode one object of each kind, for tests of our decoder.
"""
