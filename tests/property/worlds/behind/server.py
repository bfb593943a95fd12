"""The API server of a world: its objects, and the news of them.

News are delivered in order, at once or (where a world's watch lags) when a move says so.
"""

from __future__ import annotations

from collections import deque

import msgspec

from quorate.core.model.changes import (
    DialectServed,
    GangChanged,
    GangGone,
    NodeChanged,
    NodeGone,
    ObjectChanged,
    ObjectGone,
    OwnerChanged,
    PodChanged,
    PodGone,
)


class Server:
    """Objects by their names; pods by uid."""

    def __init__(self, deliver, lags):
        self._deliver, self.lags = deliver, lags
        self.news = deque()
        self.nodes, self.pods, self.specs = {}, {}, {}
        self.objects = {}
        """All other objects, by kind, namespace and name."""
        self.owners, self.served = {}, {}
        self.made = 0

    def number(self):
        """Return a number that was not given before: for names, uids and versions."""
        self.made += 1
        return self.made

    def tell(self, change):
        """Deliver news after those that are under way."""
        if self.lags or self.news:
            self.news.append(change)
        else:
            self._deliver(change)

    def flush(self, count=None):
        """Deliver the oldest ``count`` news; all of them if it is None."""
        while self.news and count != 0:
            self._deliver(self.news.popleft())
            count = None if count is None else count - 1

    # Nodes

    def put_node(self, node):
        self.nodes[node.name] = node
        self.tell(NodeChanged(node))

    def remove_node(self, name):
        if self.nodes.pop(name, None) is not None:
            self.tell(NodeGone(name))

    # Pods

    def put_pod(self, pod):
        self.pods[pod.uid] = pod
        self.tell(PodChanged(pod))

    def edit_pod(self, uid, **fields):
        """Change fields of a pod that exists; return whether it does."""
        if uid not in self.pods:
            return False
        self.put_pod(msgspec.structs.replace(self.pods[uid], **fields))
        return True

    def remove_pod(self, uid):
        if self.pods.pop(uid, None) is not None:
            self.tell(PodGone(uid))

    # Gangs and their owners

    def put_spec(self, spec):
        self.specs[spec.key] = spec
        self.tell(GangChanged(spec))

    def remove_spec(self, key):
        if self.specs.pop(key, None) is not None:
            self.tell(GangGone(key))

    def put_owner(self, namespace, owner, cron_job, meant=None):
        """Answer who made an owner, and which gang it names: it is asked for with its first pod."""
        replicas, *_ = self.owners.get((namespace, owner), (None,))
        self.owners[namespace, owner] = replicas, cron_job, meant
        self.tell(OwnerChanged(namespace, owner, replicas, cron_job, meant))

    def scale_owners(self, key, replicas):
        """Let all owners of a gang's pods make so many."""
        for (namespace, owner), (_, *others) in self.owners.items():
            if (namespace, owner.name.rpartition("-")[0]) == (key.namespace, key.name):
                self.owners[namespace, owner] = replicas, *others
                self.tell(OwnerChanged(namespace, owner, replicas, *others))

    def put_served(self, dialect, served):
        self.served[dialect] = served
        self.tell(DialectServed(dialect, served))

    # Other objects

    def put(self, found):
        key = type(found).__name__, getattr(found, "namespace", ""), found.name
        self.objects[key] = found
        self.tell(ObjectChanged(found))

    def get(self, kind, name, namespace=""):
        return self.objects.get((kind, namespace, name))

    def of_kind(self, kind):
        return [found for key, found in self.objects.items() if key[0] == kind]

    def remove(self, kind, name, namespace=""):
        if self.objects.pop((kind, namespace, name), None) is not None:
            self.tell(ObjectGone(kind, namespace, name))

    def changes(self):
        """Return everything that is, as a new scheduler would be told it."""
        return [
            *(DialectServed(*one) for one in self.served.items()),
            *(ObjectChanged(one) for one in self.objects.values()),
            *(NodeChanged(one) for one in self.nodes.values()),
            *(GangChanged(one) for one in self.specs.values()),
            *(PodChanged(one) for one in self.pods.values()),
            *(OwnerChanged(*who, *facts) for who, facts in self.owners.items()),
        ]
