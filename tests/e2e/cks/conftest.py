"""A cluster of two organizations with the policies, and users with kubectl and their rights."""

import itertools
import json
from collections.abc import Iterator

import pytest

from tests.e2e.harness.recording_proxy import Recording
from tools.controlplane import Access, KubectlError
from tools.harness import cks
from tools.harness.cks import ORG, Keeper
from tools.testing import wait_for

ORGANIZATIONS = ("acme", "zeta")
SYSTEM = ("kube-node-lease", "kube-public", "kube-system")
DOCUMENTED = "Namespaces `*.coreweave.cloud` or `*.coreweave.com` are not allowed."
RBAC = "rbac.authorization.k8s.io"
NODE_LABELS = {
    "apiVersion": f"{RBAC}/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "node-labels"},
    "rules": [{"apiGroups": [""], "resources": ["nodes", "nodes/status"], "verbs": ["*"]}],
}
ROLES = ("quorate-cks-namespaces", "node-labels", "edit")
"""What users of organizations are granted in the whole cluster."""
_numbers = itertools.count()


class User:
    """Somebody with real kubectl: a name, groups, and the rights that these were granted."""

    def __init__(self, cluster: Access, name: str, *groups: str) -> None:
        self._cluster = cluster
        self._as = [f"--as={name}"]
        self._as += [f"--as-group={group}" for group in (*groups, "system:authenticated")]

    def kubectl(self, *args: str, manifest: dict | None = None) -> str:
        """Return what kubectl prints. Raises KubectlError."""
        text = json.dumps(manifest) if manifest else None
        return self._cluster.kubectl(*self._as, *args, input=text)

    def refused(self, *args: str, manifest: dict | None = None) -> str:
        """Return what kubectl says of a call that has to be refused."""
        with pytest.raises(KubectlError) as refusal:
            self.kubectl(*args, manifest=manifest)
        return str(refusal.value)


class Tenants:
    """Users of the organizations, each with kubectl, and names of namespaces."""

    def __init__(self, cluster: Access) -> None:
        self.cluster = cluster
        self.jane = User(cluster, "jane", "org:acme")
        self.zed = User(cluster, "zed", "org:zeta")
        self.ada = User(cluster, "ada", "org:acme", "org:zeta", "org:control-plane")
        self.nobody = User(cluster, "nobody", "org:nowhere")
        self.platform = User(cluster, "root", "system:masters")
        self._made: list[str] = []

    def name(self) -> str:
        """Return the name of a namespace that is deleted after the test."""
        self._made.append(f"cks-{next(_numbers)}")
        return self._made[-1]

    def remove(self) -> None:
        names = [one for one in self._made if self.cluster.exists(f"/api/v1/namespaces/{one}")]
        if names:
            self.cluster.kubectl("delete", "namespace", *names, "--wait=false")


def namespace(name: str, organization: str) -> dict:
    about = {"name": name, "labels": {ORG: organization}}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": about}


def labels_of(cluster: Access, path: str) -> dict:
    return cluster.api("GET", path)["metadata"].get("labels", {})


def grant(cluster: Access, role: str, *groups: str) -> None:
    """Bind a ClusterRole to groups, in the whole cluster."""
    cluster.apply(
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": f"cks-{role}"},
            "roleRef": {"kind": "ClusterRole", "name": role, "apiGroup": RBAC},
            "subjects": [{"kind": "Group", "name": one, "apiGroup": RBAC} for one in groups],
        }
    )


@pytest.fixture(scope="package")
def policies(cluster) -> Iterator[None]:
    """The policies, as a platform team applies them; gone after the package."""
    with cks.policies(cluster, ORGANIZATIONS):
        cluster.apply(NODE_LABELS)
        for role in ROLES:
            grant(cluster, role, *(f"org:{one}" for one in (*ORGANIZATIONS, "nowhere")))
        cluster.kubectl("label", "namespaces", *SYSTEM, f"{ORG}=control-plane")
        yield
        cluster.kubectl("label", "namespaces", *SYSTEM, f"{ORG}-")
        cluster.kubectl("delete", "clusterrolebinding", *(f"cks-{role}" for role in ROLES))
        cluster.kubectl("delete", "clusterrole", "node-labels")


@pytest.fixture(scope="module")
def keeper(cluster, policies, tmp_path_factory) -> Iterator[Keeper]:
    """The one that keeps nodes, behind a proxy that records its requests."""
    made = Keeper(cluster, tmp_path_factory.mktemp("keeper"), ORGANIZATIONS)
    made.install()
    with Recording(cluster.server, str(cluster.ca)) as proxy:
        made.recorded = proxy
        made.go_through(proxy.url)
        made.start()
        wait_for(made.leads, "it leads")
        yield made
        assert made.stop() == 0
    made.remove()
    assert not made.complaints()


@pytest.fixture
def tenants(cluster, policies) -> Iterator[Tenants]:
    made = Tenants(cluster)
    yield made
    made.remove()
