"""CoreWeave's rules as policies in a real API server, in force within a ``with``.

In: a cluster and its organizations. Called by tests/e2e/cks and bench. A policy that is applied is
not heeded at once: dry runs say when.
"""

import contextlib
import itertools
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tools.controlplane import Access, ApiError
from tools.harness.world import make_namespace
from tools.objects import pod
from tools.testing import manifests, wait_for

ORG = "ns.coreweave.cloud/org"
RESERVED = "node.coreweave.cloud/reserved"
RULES = """\
apiVersion: quorate.dev/v1alpha1
kind: WorkloadRules
organizations: [{}]
"""
_numbers = itertools.count()


@contextlib.contextmanager
def policies(cluster: Access, organizations: Sequence[str]) -> Iterator[None]:
    """Have the policies in force, as ``quorate manifests`` prints them, and then no more."""
    with tempfile.TemporaryDirectory() as folder:
        rules = Path(folder) / "rules.yaml"
        rules.write_text(RULES.format(", ".join(organizations)))
        text = manifests("--component=cks-policies", f"--rules={rules}")
    probes = f"cks-probes-{next(_numbers)}"
    make_namespace(cluster, probes)
    cluster.kubectl("label", "namespace", probes, f"{ORG}={organizations[0]}")
    try:
        cluster.kubectl("apply", "-f", "-", input=text)
        wait_for(lambda: _in_force(cluster, probes), "the policies are in force")
        yield
    finally:
        cluster.kubectl("delete", "--ignore-not-found", "-f", "-", input=text)
        wait_for(lambda: _gone(cluster, probes), "the policies are gone")
        cluster.kubectl("delete", "namespace", probes, "--wait=false")


def _admitted(cluster: Access, namespace: str, **fields: object) -> dict[str, Any] | None:
    """Return the spec that admission makes of a pod in a dry run, None where it refuses the pod."""
    path = f"/api/v1/namespaces/{namespace}/pods?dryRun=All"
    try:
        answer = cluster.api("POST", path, pod("probe", **fields))
    except ApiError as error:
        if error.status != 403:
            raise
        return None
    return dict(answer["spec"])


def _in_force(cluster: Access, namespace: str) -> bool:
    plain = _admitted(cluster, namespace)
    elsewhere = _admitted(cluster, namespace, nodeSelector={RESERVED: "no-such"})
    return plain is not None and RESERVED in plain.get("nodeSelector", {}) and elsewhere is None


def _gone(cluster: Access, namespace: str) -> bool:
    plain = _admitted(cluster, namespace)
    return plain is not None and RESERVED not in plain.get("nodeSelector", {})
