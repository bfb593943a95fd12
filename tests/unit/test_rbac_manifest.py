"""What the shipped manifests let quorate do, and how they confine its pods."""

import re

import pytest
import yaml

from pocketkube.api.rights import rbac
from pocketkube.api.writing import User
from pocketkube.store.store import Store
from quorate.cli.commands.manifests import OPTIONAL_RIGHTS, Withheld, render
from quorate.dialects import DIALECTS
from tests.paths import ROOT
from tests.rights import ASKED, LEASE, NAMESPACE, PREEMPTION, WITHHELD, Right, granted
from tools.image import building

RBAC = render(parts=["rbac"], rights=OPTIONAL_RIGHTS)
OBJECTS = [one for one in yaml.safe_load_all(render(rights=OPTIONAL_RIGHTS)) if one]
QUORATE = User(f"system:serviceaccount:{NAMESPACE}:quorate")
VIEWER = "quorate-viewer"
DOCS = ROOT / "docs" / "operators" / "security.md"
BUCKETS = {
    "ClusterRole": rbac.CLUSTER_ROLES,
    "ClusterRoleBinding": rbac.CLUSTER_ROLE_BINDINGS,
    "Role": rbac.ROLES,
    "RoleBinding": rbac.ROLE_BINDINGS,
}
FORBIDDEN_VERBS = {"*", "escalate", "bind", "impersonate", "deletecollection", "approve"}
READS_SECRETS = {"*", "secrets", "configmaps", "serviceaccounts", "serviceaccounts/token"}
RUNS_CODE = {"pods/exec", "pods/attach", "pods/portforward", "pods/ephemeralcontainers"}
REACHES_NODES = {"nodes/proxy", "pods/proxy", "services/proxy", "nodes/status"}


def only(kind: str) -> dict:
    [found] = [one for one in OBJECTS if one["kind"] == kind]
    return found


def without(right: Right) -> list[dict]:
    """Return the objects of the manifests, less one right; its rule is split where it has to be."""
    objects = list(yaml.safe_load_all(RBAC))
    for one in objects:
        if one["kind"] not in ("ClusterRole", "Role"):
            continue
        where = one["metadata"].get("namespace", "")
        single = [
            {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
            | ({"resourceNames": [name]} if name else {})
            for verb, group, resource, place, name in granted(yaml.safe_dump(one))
            if Right(verb, group, resource, place, name) != right and place == where
        ]
        one["rules"] = single
    return objects


def refused(objects: list[dict]) -> set[Right]:
    """Return which of the rights that quorate asks for these objects do not give it."""
    store = Store()
    for one in objects:
        if one["kind"] in BUCKETS:
            store.put(BUCKETS[one["kind"]], one)
    authorizer = rbac.Authorizer(store)
    left = set()
    for asked in ASKED:
        resource, _, sub = asked.resource.partition("/")
        where = asked.where or ("" if asked.verb in ("list", "watch") else "team")
        if not authorizer.allowed(
            QUORATE, asked.verb, asked.group, resource, sub, where, asked.name
        ):
            left.add(asked)
    return left


def test_the_manifests_grant_what_is_asked_for_and_nothing_else():
    assert set(granted(RBAC)) == ASKED
    assert len(granted(RBAC)) == len(ASKED), "a right is granted twice: removing one proves nothing"


def test_no_pod_may_be_deleted_unless_preemption_is_asked_for():
    text = render(parts=["rbac"])
    assert set(granted(text)) == ASKED - {PREEMPTION}
    assert len(granted(text)) == len(ASKED) - 1
    assert "delete" not in {right.verb for right in granted(text)}


@pytest.mark.parametrize("left_out", Withheld)
def test_what_is_left_out_is_not_granted_and_all_else_is(left_out):
    """Who has no devices had to grant the writing of ResourceClaims all the same."""
    text = render(parts=["rbac"], rights=set(OPTIONAL_RIGHTS) - {left_out})
    assert set(granted(text)) == ASKED - WITHHELD[left_out]
    assert len(granted(text)) == len(ASKED) - len(WITHHELD[left_out])


def test_with_all_left_out_only_the_reading_is_granted_of_what_pods_wait_for():
    rights = granted(render(parts=["rbac"], rights=()))
    verbs = {right.verb for right in rights if right.resource.startswith("resourceclaims")}
    assert verbs == {"list", "watch"}, "why pods wait is said all the same"
    assert "delete" not in {right.verb for right in rights}
    queues = {right.verb for right in rights if right.resource.startswith("queues")}
    assert queues == {"list", "watch"}


def test_the_whole_manifest_suffices():
    assert refused(list(yaml.safe_load_all(RBAC))) == set()


@pytest.mark.parametrize("right", sorted(granted(RBAC)), ids=lambda r: f"{r.verb}-{r.resource}")
def test_without_any_one_right_something_is_refused(right):
    assert refused(without(right)) == {right}


def test_there_are_no_wildcards_and_nothing_that_gives_more_rights_or_reads_secrets():
    for verb, group, resource, _, _ in granted(RBAC):
        assert verb not in FORBIDDEN_VERBS
        assert group != "*"
        assert group != "rbac.authorization.k8s.io"
        assert resource not in READS_SECRETS | RUNS_CODE | REACHES_NODES
        assert "*" not in resource
    assert "nonResourceURLs" not in RBAC
    assert "aggregationRule" not in RBAC


def test_the_roles_of_users_are_bound_to_nobody_and_those_that_aggregate_give_podgroups_only():
    roles = list(yaml.safe_load_all(render(parts=["userroles"])))
    assert {one["kind"] for one in roles} == {"ClusterRole"}
    assert not any(one["metadata"]["name"] in RBAC for one in roles)
    aggregated = [one for one in roles if "/aggregate-to-" in str(one["metadata"]["labels"])]
    assert [one["metadata"]["name"] for one in roles if one not in aggregated] == [VIEWER]
    rights = granted(yaml.safe_dump_all(aggregated))
    assert {right.resource for right in rights} == {"podgroups"}
    assert not {right.verb for right in rights} & (FORBIDDEN_VERBS - {"deletecollection"})


def test_the_viewer_reads_what_the_commands_show_and_nothing_else():
    """``quorate why``, ``gangs`` and ``nodes`` needed rights that no role gave together."""
    rights = granted(yaml.safe_dump(one_role(VIEWER)))
    assert len(rights) == len(set(rights))
    assert {right.verb for right in rights} == {"get", "list", "watch"}
    seen = {(right.group, right.resource) for right in rights if right.verb == "watch"}
    gangs = {(one.resource.group, one.resource.plural) for one in DIALECTS if one.resource}
    events = {("", "events"), ("events.k8s.io", "events")}
    assert seen == {("", "pods"), ("", "nodes")} | events | gangs
    owners = {(right.group, right.resource) for right in rights if right.verb == "list"} - seen
    assert owners == {
        ("apps", "deployments"),
        ("apps", "replicasets"),
        ("apps", "statefulsets"),
        ("batch", "jobs"),
    }
    left = {one for one in rights if (one.group, one.resource) not in seen | owners}
    assert left == {
        Right("get", "coordination.k8s.io", "leases", "", LEASE),
        Right("get", "kubeflow.org", "mpijobs"),
    }


def one_role(name: str) -> dict:
    [found] = [one for one in OBJECTS if one["metadata"]["name"] == name]
    return found


def test_leases_are_only_those_of_its_own_name_and_namespace():
    leases = [right for right in granted(RBAC) if right.resource == "leases"]
    assert {right.where for right in leases} == {NAMESPACE}
    assert {right.name for right in leases if right.verb != "create"} == {LEASE}
    config = yaml.safe_load(only("ConfigMap")["data"]["config.yaml"])
    assert config["leaderElection"]["name"] == LEASE
    assert config["leaderElection"]["namespace"] == NAMESPACE


def test_the_rights_are_those_of_one_service_account_only():
    account = {"kind": "ServiceAccount", "name": "quorate", "namespace": NAMESPACE}
    for kind in ("ClusterRoleBinding", "RoleBinding"):
        assert only(kind)["subjects"] == [account]
    assert only("Deployment")["spec"]["template"]["spec"]["serviceAccountName"] == "quorate"
    assert only("ServiceAccount")["automountServiceAccountToken"] is False


def test_the_docs_give_a_reason_for_each_right_and_list_no_other():
    """Rows of the table: | verbs | group | resources | where | why |."""
    listed = []
    row = re.compile(r"^\| `([^|]+)` \| `([^|]*)` \| `([^|]+)` \| ([^|]+) \| ([^|]+) \|$", re.M)
    rows = row.findall(_docs())
    for verbs, group, resources, where, why in rows:
        assert len(why.split()) > 3
        own = where.strip() != "cluster"
        for verb in verbs.split("` `"):
            for resource in resources.split("` `"):
                name = LEASE if own and verb != "create" else ""
                of = "" if group == "core" else group
                listed.append(Right(verb, of, resource, NAMESPACE if own else "", name))
    assert set(listed) == set(granted(RBAC))
    assert len(listed) == len(set(listed))


def _docs() -> str:
    return "\n".join(re.sub(r"\s+", " ", line).strip() for line in DOCS.read_text().splitlines())


def test_the_pod_runs_without_any_privilege():
    pod = only("Deployment")["spec"]["template"]["spec"]
    assert pod["securityContext"] == {
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert not {"hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace"} & set(pod)
    [container] = pod["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not [port for port in container["ports"] if "hostPort" in port]
    assert not {"env", "envFrom", "command", "lifecycle"} & set(container)
    labels = only("Namespace")["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"


def test_the_user_is_the_images_and_no_root_so_that_openshift_may_choose_another():
    """OpenShift refuses pods whose user is not of its namespace's range: ours said 65532.

    Only of an image whose user is a number can a kubelet see that it is not root.
    """
    pod = only("Deployment")["spec"]["template"]["spec"]
    contexts = [pod["securityContext"], *(one["securityContext"] for one in pod["containers"])]
    chosen = {"runAsUser", "runAsGroup", "fsGroup", "supplementalGroups", "seLinuxOptions"}
    assert not [one for one in contexts if chosen & set(one)]
    dockerfile = re.search(r"^USER (.+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    for user in (dockerfile[1], building.USER):
        assert all(int(number) > 0 for number in user.split(":"))


def test_the_pod_mounts_its_configuration_a_bounded_tmp_and_its_own_token_only():
    pod = only("Deployment")["spec"]["template"]["spec"]
    assert pod["automountServiceAccountToken"] is True, "the account itself says no to other pods"
    kinds = {volume["name"]: set(volume) - {"name"} for volume in pod["volumes"]}
    assert kinds == {"config": {"configMap"}, "tmp": {"emptyDir"}}
    [tmp] = [volume["emptyDir"] for volume in pod["volumes"] if "emptyDir" in volume]
    assert tmp["sizeLimit"]
    mounts = {
        mount["name"]: mount.get("readOnly", False)
        for mount in pod["containers"][0].get("volumeMounts")
    }
    assert mounts == {"config": True, "tmp": False}


def test_the_pod_asks_for_what_it_needs_and_is_bounded():
    [container] = only("Deployment")["spec"]["template"]["spec"]["containers"]
    assert {"cpu", "memory", "ephemeral-storage"} <= set(container["resources"]["requests"])
    # No limit of CPU on purpose: deployment.yaml says why.
    assert {"memory", "ephemeral-storage"} == set(container["resources"]["limits"])
