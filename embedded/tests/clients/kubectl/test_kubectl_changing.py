"""kubectl scale, rollout, set, label, delete, wait and the generators of create."""

import base64
import json

import pytest

from embedded.tests.clients.running import WAITS, as_yaml, claim, deployment, job, pod, train


@pytest.fixture
def web(kubectl):
    kubectl("apply", "-f", "-", manifest=as_yaml(deployment()))
    kubectl("rollout", "status", "deployment/web", WAITS)
    return kubectl


def test_scale(web):
    assert web("scale", "deployment/web", "--replicas=4") == "deployment.apps/web scaled"
    web("rollout", "status", "deployment/web", WAITS)
    assert len(web("get", "pods", "-l", "app=web", "-o", "name").split()) == 4
    said = web.refused("scale", "deployment/web", "--replicas=1", "--current-replicas=3")
    assert said == "error: Expected replicas to be 3, was 4"
    web("create", "-f", "-", manifest=as_yaml(train()))
    web("scale", "train/express", "--replicas=7")
    assert web("get", "train", "express", "-o", "jsonpath={.spec.cars}") == "7"


def test_a_rollout_and_back(web):
    web("set", "image", "deployment/web", "main=nginx:2")
    said = web("rollout", "status", "deployment/web", WAITS)
    assert said.endswith('deployment "web" successfully rolled out')
    history = web("rollout", "history", "deployment/web").splitlines()
    assert [line.split()[0] for line in history[2:]] == ["1", "2"]
    web("rollout", "undo", "deployment/web")
    web("rollout", "status", "deployment/web", WAITS)
    images = web(
        "get", "pods", "-l", "app=web", "-o", "jsonpath={.items[*].spec.containers[*].image}"
    )
    assert "nginx:1" in images.split()
    before = web("get", "deployment", "web", "-o", "jsonpath={.metadata.generation}")
    web("rollout", "restart", "deployment/web")
    web("rollout", "pause", "deployment/web")
    web("rollout", "resume", "deployment/web")
    after = web("get", "deployment", "web", "-o", "jsonpath={.metadata.generation}")
    assert int(after) == int(before) + 3
    web("set", "resources", "deployment/web", "--limits=cpu=1")
    web("set", "env", "deployment/web", "A=b")
    container = json.loads(web("get", "deployment", "web", "-o", "json"))["spec"]["template"][
        "spec"
    ]
    assert container["containers"][0]["resources"] == {"limits": {"cpu": "1"}}
    assert container["containers"][0]["env"] == [{"name": "A", "value": "b"}]


def test_jobs_complete_after_the_time_of_their_annotation(kubectl):
    short = job("short")
    template = short["spec"]["template"]
    template["metadata"]["annotations"] = {"quorate.dev/complete-after": "100ms"}
    kubectl("create", "-f", "-", manifest=as_yaml(short))
    kubectl("wait", "--for=condition=complete", "job/short", WAITS)
    assert kubectl("get", "job", "short", "--no-headers").split()[1:3] == ["Complete", "2/2"]


def test_stateful_sets_roll_out(kubectl):
    database = deployment("db")
    database["kind"] = "StatefulSet"
    database["spec"]["serviceName"] = "db"
    kubectl("apply", "-f", "-", manifest=as_yaml(database))
    kubectl("rollout", "status", "statefulset/db", WAITS)
    kubectl("set", "image", "statefulset/db", "main=nginx:2")
    kubectl("rollout", "status", "statefulset/db", WAITS)
    names = kubectl("get", "pods", "-l", "app=db", "-o", "name").split()
    assert names == ["pod/db-0", "pod/db-1"]


def test_labels_and_annotations(web):
    assert web("label", "deployment", "web", "tier=front").endswith("labeled")
    said = web.refused("label", "deployment", "web", "tier=back")
    assert said == "error: 'tier' already has a value (front), and --overwrite is false"
    web("label", "deployment", "web", "tier=back", "--overwrite")
    assert web("label", "deployment", "web", "tier-").endswith("unlabeled")
    web("annotate", "deployment", "web", "note=a")
    assert web("get", "deploy", "web", "-o", "jsonpath={.metadata.annotations.note}") == "a"
    web("annotate", "deployment", "web", "note-")
    assert web("get", "deploy", "web", "-o", "jsonpath={.metadata.annotations.note}") == ""


def test_wait_for_conditions_values_and_deletion(web):
    wait = ("wait", "deployment/web", WAITS)
    assert web(*wait, "--for=condition=Available").endswith("condition met")
    web("scale", "deployment/web", "--replicas=3")
    assert web(*wait, "--for=jsonpath={.status.readyReplicas}=3").endswith("condition met")
    said = web.refused("wait", "deployment/web", "--for=condition=Nosuch", "--timeout=1s")
    assert said == "error: timed out waiting for the condition on deployments/web"
    web("delete", "deployment", "web", "--wait=false")
    web("wait", "--for=delete", "pod", "-l", "app=web", WAITS)
    assert web("get", "pods", "-l", "app=web", "-o", "name") == ""


def test_delete_waits_and_takes_dependents_along(web):
    assert web("delete", "deployment", "web", "--cascade=foreground").startswith("deployment.apps")
    assert web("get", "rs,pods", "-l", "app=web", "-o", "name") == ""
    assert "(NotFound)" in web.refused("delete", "deployment", "web")
    assert web("delete", "deployment", "web", "--ignore-not-found") == ""


def test_delete_that_orphans_leaves_dependents_without_owner(web):
    web("delete", "deployment", "web", "--cascade=orphan")
    sets = json.loads(web("get", "rs", "-l", "app=web", "-o", "json"))["items"]
    assert [one["metadata"].get("ownerReferences") for one in sets] == [None]
    assert len(web("get", "pods", "-l", "app=web", "-o", "name").split()) == 2


def test_delete_by_force_by_label_by_file_and_all(kubectl):
    for name in ("a", "b", "c", "d"):
        kubectl("create", "-f", "-", manifest=as_yaml(pod(name, labels={"name": name})))
    kubectl("wait", "--for=condition=Ready", "pod", "--all", WAITS)
    forced = kubectl.run("delete", "pod", "a", "--grace-period=0", "--force")
    assert 'pod "a" force deleted' in forced.out
    assert "Immediate deletion does not wait" in forced.err
    kubectl("delete", "pods", "-l", "name=b")
    kubectl("delete", "-f", "-", manifest=as_yaml(pod("c")))
    assert kubectl("get", "pods", "-o", "name") == "pod/d"
    kubectl("delete", "pods", "--all")
    assert kubectl("get", "pods", "-o", "name") == ""


def test_deleting_a_namespace_waits_until_all_in_it_is_gone(web):
    other = f"{web.namespace}-more"
    web("create", "namespace", other)
    things = as_yaml(deployment(), job(), train(), claim())
    web("create", "-n", other, "-f", "-", manifest=things)
    web("delete", "namespace", other)
    assert "(NotFound)" in web.refused("get", "namespace", other)
    assert web("get", "pods,pvc,trains", "-n", other, "-o", "name") == ""


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
def test_the_clusters_own_namespaces_stay(kubectl, name):
    said = kubectl.refused("delete", "namespace", name, "--dry-run=server")
    assert said.endswith(f'namespaces "{name}" is forbidden: this namespace may not be deleted')


@pytest.mark.parametrize(
    ("args", "kind"),
    [
        ("configmap x --from-literal=a=b", "configmap"),
        ("secret generic x --from-literal=a=b", "secret"),
        ("serviceaccount x", "serviceaccount"),
        ("deployment x --image=nginx --replicas=2", "deployment.apps"),
        ("job x --image=busybox", "job.batch"),
        ("cronjob x --image=busybox --schedule=0/5_*_*_*_*", "cronjob.batch"),
        ("service clusterip x --tcp=80:80", "service"),
        ("role x --verb=get --resource=pods", "role.rbac.authorization.k8s.io"),
        ("rolebinding x --role=x --serviceaccount=a:b", "rolebinding.rbac.authorization.k8s.io"),
        ("poddisruptionbudget x --selector=a=b --min-available=1", "poddisruptionbudget.policy"),
        ("quota x --hard=pods=5", "resourcequota"),
        ("ingress x --rule=foo.com/bar=svc:80", "ingress.networking.k8s.io"),
    ],
)
def test_create_from_arguments(kubectl, args, kind):
    # These send protobuf, unlike what comes from files.
    arguments = [one.replace("_", " ") for one in args.split()]
    assert kubectl("create", *arguments) == f"{kind}/x created"
    assert kubectl("get", kind, "x", "-o", "name") == f"{kind}/x"


def test_run_and_expose(kubectl):
    assert kubectl("run", "solo", "--image=nginx", "--port=80") == "pod/solo created"
    kubectl("wait", "--for=condition=Ready", "pod/solo", WAITS)
    assert kubectl("expose", "pod", "solo") == "service/solo exposed"
    assert kubectl("get", "service", "solo", "-o", "jsonpath={.spec.ports[0].port}") == "80"


def test_a_kustomization_is_applied(kubectl, tmp_path):
    (tmp_path / "pod.yaml").write_text(as_yaml(pod()))
    kustomization = {"namePrefix": "my-", "resources": ["pod.yaml"]}
    (tmp_path / "kustomization.yaml").write_text(as_yaml(kustomization))
    assert kubectl("apply", "-k", str(tmp_path)) == "pod/my-solo created"


def test_a_config_map_of_a_file_arrives_byte_by_byte(kubectl, tmp_path):
    path = tmp_path / "bytes.bin"
    path.write_bytes(bytes(range(256)))
    kubectl("create", "configmap", "binary", f"--from-file={path}")
    encoded = kubectl("get", "configmap", "binary", "-o", "jsonpath={.binaryData.bytes\\.bin}")
    assert base64.b64decode(encoded) == bytes(range(256))
