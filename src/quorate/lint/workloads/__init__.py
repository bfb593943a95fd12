"""What operators make of their objects: gangs whose PodGroup stands in no manifest.

In: an object with its pod templates. Out: a ``Promise``, or None where the object becomes no gang.
One function for each kind, one row of ``table`` for each function. Called by ``manifests``.
"""
