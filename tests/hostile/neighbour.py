"""The other tenant: its gangs come and go, and each is timed from its last pod to its last bind."""

import itertools
import statistics
import time

from tests.e2e.world import GANG_LABEL, make_namespace, pod, pod_group
from tools.controlplane import Access

MEMBERS = 8
PATIENCE_S = 60.0
_LOOK_S = 0.01


class Neighbour:
    """A namespace with gangs that ask for a little cpu."""

    def __init__(self, cluster: Access, namespace: str, scheduler: str = "quorate") -> None:
        self.namespace = namespace
        self.scheduler = scheduler
        self._cluster = cluster
        self._numbers = itertools.count()
        self._base = f"namespaces/{namespace}"
        self._pods = f"/api/v1/{self._base}/pods"
        make_namespace(cluster, namespace)

    def start_gang(self) -> float:
        """Have one gang come and go; return seconds from its last pod to its last bind.

        Raises AssertionError when it does not start in ``PATIENCE_S``.
        """
        name = f"g{next(self._numbers)}"
        groups = f"/apis/scheduling.x-k8s.io/v1alpha1/{self._base}/podgroups"
        self._cluster.api("POST", groups, pod_group(name, MEMBERS))
        labels = {GANG_LABEL: name}
        options = {"labels": labels, "requests": {"cpu": "100m"}, "scheduler": self.scheduler}
        for number in range(MEMBERS):
            self._cluster.api("POST", self._pods, pod(f"{name}-{number}", **options))
        created_s = time.monotonic()
        selector = f"labelSelector={GANG_LABEL}%3D{name}"
        while self._bound(selector) < MEMBERS:
            waited_s = time.monotonic() - created_s
            said = "" if waited_s < PATIENCE_S else self._said(selector)
            assert not said, f"gang {name} waits for {waited_s:.0f} s: {said}"
            time.sleep(_LOOK_S)
        took_s = time.monotonic() - created_s
        self._cluster.api("DELETE", f"{self._pods}?{selector}&gracePeriodSeconds=0")
        self._cluster.api("DELETE", f"{groups}/{name}")
        return took_s

    def median_s(self, gangs: int) -> float:
        """Have so many gangs come and go, one after the other; return the median time."""
        return statistics.median(self.start_gang() for _ in range(gangs))

    def remove(self) -> None:
        self._cluster.api("DELETE", f"{self._pods}?gracePeriodSeconds=0")
        self._cluster.api("DELETE", f"/api/v1/{self._base}")

    def _items(self, selector: str) -> list[dict]:
        return self._cluster.api("GET", f"{self._pods}?{selector}")["items"]

    def _bound(self, selector: str) -> int:
        return sum(bool(one["spec"].get("nodeName")) for one in self._items(selector))

    def _said(self, selector: str) -> str:
        conditions = [
            condition.get("message", "")
            for one in self._items(selector)
            for condition in one["status"].get("conditions", [])
        ]
        return "; ".join(sorted(set(conditions))) or "nothing is said"
