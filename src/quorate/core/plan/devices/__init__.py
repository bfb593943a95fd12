"""Devices for claims: which devices a pod's claims get on a node, as kube-scheduler's allocator.

``expressions`` evaluates CEL selectors; ``requests`` resolves what claims ask for; ``allocator``
searches; ``constraints`` and ``shares`` are its rules; ``views`` says which pools a node sees and
which nodes are alike; ``taking`` is what a cycle has given away; ``results`` writes allocations.
"""
