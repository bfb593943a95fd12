"""Which devices the claims of a pod get, as kube-scheduler's allocator chooses them.

``cel`` answers the selectors of claims and classes. ``looks`` is what claims can see of devices;
``allocator`` searches, by the rules of ``taken`` (``used``, ``constraints``, ``shares``);
``allocations`` remembers what was found for kinds of nodes; ``taking`` is what one turn gives away;
``results`` makes allocations of it.
"""
