"""Which devices the claims of a pod get, as kube-scheduler's allocator chooses them.

``cel`` evaluates the selectors of claims and classes. ``search`` chooses among the devices of one
kind of node, ``outcomes`` keeps results by kind. ``device_room`` records what one turn allocates.
"""
