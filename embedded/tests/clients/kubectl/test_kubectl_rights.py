"""kubectl on nodes (cordon, drain, taint), on users and rights, and what is refused."""

import json
import socket
import subprocess

import pytest

from embedded.tests.clients.running import WAITS, as_yaml, deployment, pod


@pytest.fixture
def held(kubectl, cluster):
    """Two pods on a node of their own, of which a budget lets none go."""
    node = f"held-{kubectl.namespace}"
    cluster.create_nodes([node])
    held = deployment("held")
    held["spec"]["template"]["spec"]["nodeSelector"] = {"kubernetes.io/hostname": node}
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "held"},
        "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "held"}}},
    }
    kubectl("apply", "-f", "-", manifest=as_yaml(held, budget))
    kubectl("rollout", "status", "deployment/held", WAITS)
    kubectl("wait", "pdb/held", "--for=jsonpath={.status.currentHealthy}=2", WAITS)
    yield node
    cluster.api("DELETE", f"/api/v1/nodes/{node}")


def test_cordon_and_uncordon(kubectl, held):
    assert kubectl("cordon", held) == f"node/{held} cordoned"
    assert kubectl("get", "node", held).splitlines()[1].split()[1] == "Ready,SchedulingDisabled"
    assert kubectl("uncordon", held) == f"node/{held} uncordoned"


def test_drain_respects_the_budget_and_works_without_it(kubectl, held):
    drain = ("drain", held, "--ignore-daemonsets")
    with subprocess.Popen(
        kubectl.command(*drain), env=kubectl.environment, stderr=subprocess.PIPE, text=True
    ) as draining:
        # It would try again every 5 seconds.
        said = next(line for line in draining.stderr if line.startswith("error"))
        draining.terminate()
    assert "Cannot evict pod as it would violate the pod's disruption budget." in said
    on_node = ("get", "pods", "--field-selector", f"spec.nodeName={held}", "-o", "name")
    assert len(kubectl(*on_node).split()) == 2
    kubectl("delete", "pdb", "held")
    assert kubectl(*drain, WAITS).endswith(f"node/{held} drained")
    assert kubectl(*on_node) == ""


def test_drain_without_eviction_deletes(kubectl, held):
    drain = ("drain", held, "--ignore-daemonsets", "--disable-eviction", WAITS)
    assert kubectl(*drain).endswith(f"node/{held} drained")


def test_taints(kubectl, held):
    taint = ("taint", "node", held)
    assert kubectl(*taint, "a=b:NoSchedule") == f"node/{held} tainted"
    assert "already has a taints" in kubectl.refused(*taint, "a=c:NoSchedule").replace(
        "taint(s)", "taints"
    )
    assert kubectl(*taint, "a-") == f"node/{held} untainted"


def test_who_am_i_and_what_may_i(kubectl):
    assert "system:masters" in kubectl("auth", "whoami")
    assert kubectl("auth", "can-i", "create", "pods") == "yes"
    kubectl("create", "serviceaccount", "reader")
    kubectl("create", "role", "reader", "--verb=get,list", "--resource=pods")
    account = f"system:serviceaccount:{kubectl.namespace}:reader"
    binding = ("--role=reader", f"--serviceaccount={kubectl.namespace}:reader")
    kubectl("create", "rolebinding", "reader", *binding)
    as_reader = f"--as={account}"
    assert kubectl("auth", "can-i", "list", "pods", as_reader) == "yes"
    assert kubectl.run("auth", "can-i", "delete", "pods", as_reader)[:2] == (1, "no\n")


def test_the_rights_of_a_service_accounts_token(kubectl, cluster):
    kubectl("create", "serviceaccount", "reader")
    kubectl("create", "role", "reader", "--verb=get,list", "--resource=pods")
    binding = ("--role=reader", f"--serviceaccount={kubectl.namespace}:reader")
    kubectl("create", "rolebinding", "reader", *binding)
    token = kubectl("create", "token", "reader", "--duration=1h")
    assert token.count(".") == 2
    path = str(cluster.kubeconfig_for(token, name=f"reader-{kubectl.namespace}"))
    assert kubectl("get", "pods", "-o", "name", KUBECONFIG=path) == ""
    said = kubectl.refused("get", "secrets", KUBECONFIG=path)
    user = f'User "system:serviceaccount:{kubectl.namespace}:reader"'
    assert said.startswith(
        f"Error from server (Forbidden): secrets is forbidden: {user} cannot list"
    )
    said = kubectl.refused("get", "pods", "--as=admin", KUBECONFIG=path)
    assert f'{user} cannot impersonate-on:user-info:list resource "pods"' in said
    said = kubectl.refused("get", "pods", "--as=nobody")
    assert 'User "nobody" cannot list resource "pods"' in said


def test_an_unknown_token_is_told_so(kubectl, cluster):
    path = str(cluster.kubeconfig_for("nonsense", name=f"bad-{kubectl.namespace}"))
    said = kubectl.refused("get", "pods", KUBECONFIG=path)
    assert said.endswith("error: You must be logged in to the server (Unauthorized)")


@pytest.fixture
def solo(kubectl):
    kubectl("create", "-f", "-", manifest=as_yaml(pod()))
    kubectl("wait", "--for=condition=Ready", "pod/solo", WAITS)
    return kubectl


@pytest.mark.parametrize(
    "args",
    ["logs solo", "exec solo -- ls", "attach solo", "port-forward solo {port}:80", "cp a solo:/a"],
    ids=lambda args: args.split()[0],
)
def test_what_needs_a_container_is_refused_in_one_line(solo, on_real, args, tmp_path):
    if on_real:
        pytest.skip("a real control plane has no containers either, and says so otherwise")
    (tmp_path / "a").write_text("a")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    arguments = args.format(port=port).replace("cp a ", f"cp {tmp_path}/a ").split()
    said = solo.refused(*arguments).splitlines()
    assert "no container runs in an embedded cluster, so " in said[-1]
    assert len([line for line in said if "rror" in line]) == 1


def test_logs_of_a_pod_that_is_not_there(kubectl):
    said = kubectl.refused("logs", "nosuch")
    assert (
        said
        == 'error: error from server (NotFound): pods "nosuch" not found in namespace '
        + json.dumps(kubectl.namespace)
    )


@pytest.mark.parametrize("what", ["nodes", "pods"])
def test_top_needs_a_metrics_server(kubectl, what):
    assert kubectl.refused("top", what) == "error: Metrics API not available"
