"""Volcano's APIs: installed in a cluster, and removed again."""

from tests.paths import ROOT
from tools.controlplane import Access

MANIFEST = ROOT / "tests" / "e2e" / "manifests" / "volcano.yaml"
CRDS = ("podgroups.scheduling.volcano.sh", "queues.scheduling.volcano.sh")


def install_volcano(cluster: Access) -> None:
    """Apply the definitions, and wait until they are served."""
    cluster.kubectl("apply", "-f", str(MANIFEST))
    for crd in CRDS:
        cluster.kubectl("wait", "--for=condition=Established", f"crd/{crd}")


def remove_volcano(cluster: Access) -> None:
    """Delete the definitions, and with them every object of theirs."""
    cluster.kubectl("delete", "crd", *CRDS)
