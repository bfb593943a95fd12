"""The scheduler that is attacked, and what it must keep: its lease, its memory, its calm."""

import re
from pathlib import Path
from typing import NamedTuple

import yaml

from tools.controlplane import Access
from tools.harness.scheduler import Quorate
from tools.testing import manifests, wait_for

SHIPPED_LEASE = {"leaseDurationSeconds": 15, "renewDeadlineSeconds": 10, "retryPeriodSeconds": 2}
_LEASE = "/apis/coordination.k8s.io/v1/namespaces/{}/leases/quorate"
_DEFECTS = (
    "quorate_contained_defects_total",
    "quorate_invariant_violations_total",
    "quorate_unverified_plans_total",
)
_SIGNS_OF_DEFECTS = (
    b"Traceback",
    b"never awaited",
    b"never retrieved",
    b"Unclosed",
    b"recording ended",
)
_SIGNS_OF_ERRORS = (b'"level": "error"', b'"level":"error"')


def memory_limit_bytes() -> int:
    """Return the memory limit of the container in the shipped Deployment."""
    [deployment] = [
        one
        for one in yaml.safe_load_all(manifests("--only", "deployment"))
        if one and one["kind"] == "Deployment"
    ]
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    limit = container["resources"]["limits"]["memory"]
    assert limit.endswith("Gi"), limit
    return int(limit[:-2]) * 2**30


class State(NamedTuple):
    """What may not change while it is attacked."""

    pid: int
    holder: str
    transitions: int
    defects: dict[str, float]


class Target:
    """A scheduler with the lease of the shipped manifests, seen from outside.

    Without ``errors`` it may log errors, because its API server makes some, but no defects.
    """

    def __init__(
        self, cluster: Access, running: Quorate, namespace: str, *, errors: bool = True
    ) -> None:
        self.running = running
        self._signs = _SIGNS_OF_DEFECTS + (_SIGNS_OF_ERRORS if errors else ())
        self._cluster = cluster
        self._namespace = namespace
        self._limit_bytes = memory_limit_bytes()
        self._log_read = 0

    def state(self) -> State:
        assert self.running.process.poll() is None, f"it ended:\n{self.running.log()[-4000:]}"
        lease = self._lease()
        transitions = lease.get("leaseTransitions", 0)
        return State(
            self.running.process.pid, lease["holderIdentity"], transitions, self._defects()
        )

    def _defects(self) -> dict[str, float]:
        found: dict[str, float] = {}
        for line in self.running.page("/metrics").splitlines():
            name, _, value = line.rpartition(" ")
            if name.startswith(_DEFECTS) and float(value):
                found[name] = float(value)
        return found

    def _lease(self) -> dict:
        return self._cluster.api("GET", _LEASE.format(self._namespace))["spec"]

    def wait_renewed(self) -> None:
        """Wait until it has renewed the lease once more."""
        before = self._lease()["renewTime"]
        wait_for(lambda: self._lease()["renewTime"] != before, "the lease is renewed")

    def forget_peak(self) -> None:
        """Have the kernel count the peak of memory anew."""
        Path(f"/proc/{self.running.process.pid}/clear_refs").write_text("5")

    def peak_since_bytes(self) -> int:
        """Return the most memory that it had since ``forget_peak``."""
        status = Path(f"/proc/{self.running.process.pid}/status").read_text()
        peak = re.search(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)
        assert peak, status
        return int(peak[1]) * 1024

    def said_since(self) -> list[str]:
        """Return the lines of its log since the last call that it may not have."""
        with self.running.log_file.open("rb") as log:
            log.seek(self._log_read)
            text = log.read()
            self._log_read = log.tell()
        return [
            line.decode(errors="replace")[:2000]
            for line in text.splitlines()
            if any(sign in line for sign in self._signs)
        ]

    def check(self, before: State) -> None:
        """Fail if it lost anything since ``before``, or said what it may not."""
        assert self.state() == before
        assert self.peak_since_bytes() < self._limit_bytes
        said = self.said_since()
        assert not said, said
