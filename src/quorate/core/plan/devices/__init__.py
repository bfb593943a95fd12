"""Devices for claims: which ones a pod's claims get on a node, as kube-scheduler's allocator.

``expressions`` evaluates CEL selectors (``cel_text`` rewrites them for the library); ``allocator``
searches, by the rules of ``constraints`` and ``shares``; ``outcomes`` remembers what was found for
kinds of nodes; ``taking`` is what a cycle gives away; ``results`` makes allocations of it.
"""
