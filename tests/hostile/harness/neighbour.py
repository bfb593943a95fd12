"""The other tenant: its gangs come and go, and each has to start."""

import itertools
import time

from tools.controlplane import Access
from tools.harness.world import make_namespace
from tools.objects import GANG_LABEL, pod, pod_group
from tools.testing import HANGS_S

MEMBERS = 8
NAME_LABEL, MIN_LABEL = (
    f"pod-group.scheduling.sigs.k8s.io/{part}" for part in ("name", "min-available")
)
_LOOK_S = 0.01


class Neighbour:
    """A namespace with gangs that ask for a little cpu.

    Without ``objects`` labels alone name them, so that they need pods and nodes and nothing else.
    """

    def __init__(
        self, cluster: Access, namespace: str, scheduler: str = "quorate", *, objects: bool = True
    ) -> None:
        self._has_objects = objects
        self.namespace = namespace
        self.scheduler = scheduler
        self._cluster = cluster
        self._numbers = itertools.count()
        self._base = f"namespaces/{namespace}"
        self._pods = f"/api/v1/{self._base}/pods"
        self._groups = f"/apis/scheduling.x-k8s.io/v1alpha1/{self._base}/podgroups"
        make_namespace(cluster, namespace)

    def start_gangs(self, gangs: int) -> None:
        """Have so many gangs start and go, one after the other; fail if one does not start."""
        for _ in range(gangs):
            gang = self.create_gang()
            self.wait_started(gang)
            self.remove_gang(gang)

    def create_gang(self, group: dict | None = None, **options: object) -> str:
        """Create the pods of a gang, and its object with ``group`` in its spec; return its name."""
        gang = f"g{next(self._numbers)}"
        if self._has_objects:
            self._cluster.api("POST", self._groups, pod_group(gang, MEMBERS, **(group or {})))
        by_labels = {NAME_LABEL: gang, MIN_LABEL: f"{MEMBERS}"}
        labels = {"gang": gang, **({GANG_LABEL: gang} if self._has_objects else by_labels)}
        own = {"requests": {"cpu": "100m"}, "scheduler": self.scheduler, **options}
        for number in range(MEMBERS):
            self._cluster.api("POST", self._pods, pod(f"{gang}-{number}", labels=labels, **own))
        return gang

    def wait_started(self, gang: str) -> None:
        """Wait until all members are bound."""
        created_s = time.monotonic()
        while self.bound(gang) < MEMBERS:
            waited_s = time.monotonic() - created_s
            said = "" if waited_s < HANGS_S else self.said(gang)
            assert not said, f"gang {gang} waits for {waited_s:.0f} s: {said}"
            time.sleep(_LOOK_S)

    def remove_gang(self, gang: str) -> None:
        self._cluster.api(
            "DELETE", f"{self._pods}?labelSelector=gang%3D{gang}&gracePeriodSeconds=0"
        )
        if self._has_objects:
            self._cluster.api("DELETE", f"{self._groups}/{gang}")

    def remove(self) -> None:
        self._cluster.api("DELETE", f"{self._pods}?gracePeriodSeconds=0")
        self._cluster.api("DELETE", f"/api/v1/{self._base}")

    def _items(self, gang: str) -> list[dict]:
        selected = f"{self._pods}?labelSelector=gang%3D{gang}"
        return self._cluster.api("GET", selected)["items"]

    def bound(self, gang: str) -> int:
        """Return how many members have a node and are not going."""
        return sum(
            bool(one["spec"].get("nodeName")) and "deletionTimestamp" not in one["metadata"]
            for one in self._items(gang)
        )

    def said(self, gang: str) -> str:
        """Return what conditions of its members say."""
        conditions = [
            condition.get("message", "")
            for one in self._items(gang)
            for condition in one["status"].get("conditions", [])
        ]
        return "; ".join(sorted(set(conditions))) or "nothing is said"
