"""CoreWeave's rules in a real cluster: policies within a ``with``, and who keeps the nodes.

In: a cluster and its organizations. Called by tests/e2e/cks and bench. A policy that is applied is
not heeded at once: dry runs say when.
"""

import contextlib
import itertools
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from tools.controlplane import Access, ApiError
from tools.harness.running import Running
from tools.harness.world import make_namespace
from tools.objects import pod
from tools.testing import command_line, manifests, wait_for

ORG = "ns.coreweave.cloud/org"
RESERVED = "node.coreweave.cloud/reserved"
DESIRED = "node.coreweave.cloud/reserved-desired"
STATE = "node.coreweave.cloud/state"
KEEPER = "quorate-cks-nodes"
NAMESPACE = "quorate-system"
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
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
        text = _manifests("cks-policies", rules_file(Path(folder), organizations))
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


def rules_file(folder: Path, organizations: Sequence[str]) -> Path:
    """Write the rules of these organizations; return the file."""
    rules = folder / "rules.yaml"
    rules.write_text(RULES.format(", ".join(organizations)))
    return rules


def _manifests(component: str, rules: Path) -> str:
    return manifests(f"--component={component}", f"--rules={rules}")


class Keeper(Running):
    """A running ``quorate cks-nodes``, as the ServiceAccount of the shipped manifests."""

    def __init__(self, cluster: Access, folder: Path, organizations: Sequence[str]) -> None:
        super().__init__(folder)
        self._cluster = cluster
        self.rules = rules_file(folder, organizations)
        objects = yaml.safe_load_all(_manifests("cks-nodes", self.rules))
        self._objects = [one for one in objects if one["kind"] != "Deployment"]

    def install(self) -> None:
        """Apply all but the Deployment: this process is in its place."""
        self._cluster.apply(*self._objects)
        wait_for(lambda: not self._takes("nowhere"), "the policy is in force")
        token = self._cluster.service_account_token(NAMESPACE, KEEPER)
        self.kubeconfig = self._cluster.kubeconfig_for(token, name=f"cks-nodes-{self.port}")

    def remove(self) -> None:
        """Take away what ``install`` has applied."""
        text = yaml.safe_dump_all(self._objects)
        self._cluster.kubectl("delete", "--ignore-not-found", "-f", "-", input=text)
        self._cluster.delete(f"{LEASES}/{KEEPER}")

    def _takes(self, state: str) -> bool:
        """Tell whether a node may have this state, in a dry run."""
        about = {"name": f"probe-{self.port}", "labels": {STATE: state}}
        body = {"apiVersion": "v1", "kind": "Node", "metadata": about}
        try:
            self._cluster.api("POST", "/api/v1/nodes?dryRun=All", body)
        except ApiError as error:
            if error.status != 422:
                raise
            return False
        return True

    def command(self) -> list[str]:
        call = ("cks-nodes", "--rules", str(self.rules), "--health-port", str(self.port))
        return command_line(*call, "--kubeconfig", str(self.kubeconfig))

    def leads(self) -> bool:
        return self.metric("quorate_cks_leader") == 1.0


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
