"""Devices for claims: which ones a pod's claims get on a node, as kube-scheduler's allocator.

``expressions`` remembers the answers of CEL selectors: ``cel_programs`` calls the library,
``cel_text`` rewrites expressions for it and adds up what they cost (``cel_cost``, ``cel_names``).
``seen`` is what claims can see of devices; ``allocator`` searches, by the rules of ``taken``
(``used``, ``constraints``, ``shares``); ``outcomes`` remembers what was found for kinds of nodes;
``taking`` is what a cycle gives away; ``results`` makes allocations of it.
"""
