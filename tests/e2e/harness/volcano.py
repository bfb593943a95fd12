"""Volcano's APIs: installed in a cluster, and removed again."""

from tests.paths import ROOT
from tools.controlplane import Access

MANIFEST = ROOT / "tests" / "e2e" / "manifests" / "volcano.yaml"
CRDS = ("podgroups.scheduling.volcano.sh", "queues.scheduling.volcano.sh")


def install_volcano(cluster: Access) -> None:
    """Apply the definitions; they are served when it returns."""
    cluster.apply(MANIFEST.read_text())


def remove_volcano(cluster: Access) -> None:
    """Delete the definitions, and with them every object of theirs."""
    for crd in CRDS:
        cluster.delete(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{crd}")
