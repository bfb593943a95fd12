"""Which devices the claims of a pod get, as kube-scheduler's allocator chooses them.

``cel`` evaluates the selectors of claims and classes. ``looks`` reduces devices to what claims can
distinguish. ``allocator`` searches, by the rules of ``picked`` (``use_counts``, ``constraints``,
``shares``). ``allocations`` caches results by kind of node. ``device_room`` records what one turn
allocates; ``results`` turns it into allocations.
"""
