"""Bad input is held or left out, with a reason, while everything else goes on."""

import copy
import json
import time

import pytest
import yaml

from tests.e2e.harness.gang_shapes import SHAPES
from tools.controlplane import ApiError
from tools.controlplane.process import free_port
from tools.harness.scheduler import CONFIG
from tools.objects import SIGS, gang_pods, pod, pod_group
from tools.testing import wait_for

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SIGS_CRD = f"{CRDS}/podgroups.scheduling.sigs.k8s.io"

BAD_SPECS = {
    "min-text": ({"minMember": "four"}, 'spec.minMember: "four" is not a whole number'),
    "min-null": ({"minMember": None}, "spec.minMember: null is not a whole number"),
    "min-float": ({"minMember": 2.5}, "spec.minMember: 2.5 is not a whole number"),
    "min-bool": ({"minMember": True}, "spec.minMember: True is not a whole number"),
    "min-huge": ({"minMember": 10**18}, f"spec.minMember: {10**18} is too large"),
    "min-list": ({"minMember": [4]}, "spec.minMember: [4] is not a whole number"),
    "min-low": ({"minMember": -(10**18)}, f"spec.minMember: {-(10**18)} is too small"),
    "spec-list": ([1, 2], "spec: [1, 2] is not an object"),
    "spec-text": ("x" * 5000, "is not an object"),
    "res-word": ({"minMember": 1, "minResources": {"cpu": "lots"}}, "spec.minResources.cpu: "),
    "res-list": ({"minMember": 1, "minResources": ["cpu"]}, "spec.minResources: "),
    "res-below-0": ({"minMember": 1, "minResources": {"cpu": "-4"}}, "spec.minResources.cpu: "),
    "time-text": (
        {"minMember": 1, "scheduleTimeoutSeconds": "soon"},
        'spec.scheduleTimeoutSeconds: "soon" is not a whole number',
    ),
}


@pytest.fixture
def loose_sigs(cluster, quorate):
    """The first PodGroup API with a CRD that lets everything in; then the shipped one again."""
    path = f"/apis/{SIGS}/podgroups"

    def watches() -> float:
        counters = ("quorate_watch_reconnects", "quorate_watch_relists")
        return sum(quorate.metric(counter, resource=path) for counter in counters)

    # Its watch must be open, or none is ended: it hears of what is made after it has listed.
    age = "quorate_watch_age_seconds"
    wait_for(lambda: f'{age}{{resource="{path}"}}' in quorate.page("/metrics"), "it has listed")
    first, made_s = f"/apis/{SIGS}/namespaces/default/podgroups", time.monotonic()
    cluster.api("POST", first, pod_group("first", 1, SIGS))
    wait_for(
        lambda: quorate.metric(age, resource=path) < time.monotonic() - made_s, "its watch hears"
    )
    cluster.delete(f"{first}/first")
    before = watches()
    current = cluster.api("GET", SIGS_CRD)
    loose = copy.deepcopy(current["spec"])
    anything = {"x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": anything, "status": anything}}
    loose["versions"][0]["schema"]["openAPIV3Schema"] = schema
    put_spec(cluster, loose)
    # Until the API server ends it, the watch shows objects as the old schema would have them.
    wait_for(lambda: watches() > before, "quorate's watch is a new one")
    yield
    put_spec(cluster, current["spec"])


def put_spec(cluster, spec: dict) -> None:
    cluster.api("PUT", SIGS_CRD, {**cluster.api("GET", SIGS_CRD), "spec": spec})


def create_bad(world, name: str, spec: object, **more: object) -> None:
    """Create an object as soon as the API server has taken the loose schema in."""
    path = f"/apis/{SIGS}/namespaces/{world.namespace}/podgroups"
    body = {**pod_group(name, 1, SIGS), "spec": spec, **more}

    def created() -> bool:
        try:
            world.cluster.api("POST", path, body)
        except ApiError as error:
            if error.status == 422:
                return False
            raise
        return True

    wait_for(created, f"{name} is let in")


def test_malformed_pod_groups_hold_their_pods_and_name_the_field_while_others_go_on(
    world, loose_sigs
):
    world.nodes(4)
    for name, (spec, _) in BAD_SPECS.items():
        create_bad(world, name, spec)
        world.create_pods(SHAPES["sigs"].pods(name, 1))
    for name, (_, said) in BAD_SPECS.items():
        sentence = world.wait_condition(f"PodGroup {name} cannot be used: ", f"gang={name}")
        assert said in sentence, sentence
        assert len(sentence) < 300
    assert world.why("min-text")["reason"] == "PodGroupInvalid"
    wait_for(
        lambda: (
            world.quorate.metric("quorate_misconfigured_gangs", reason="PodGroupInvalid")
            == len(BAD_SPECS)
        ),
        "the metric counts all of them",
    )
    world.create_pods(world.gang("good", 2))
    world.wait_bound(2, "gang=good")
    assert world.bound() == 2

    world.patch_group("min-text", {"spec": {"minMember": 1}}, SIGS)
    world.wait_bound(1, "gang=min-text")
    world.cluster.delete(world.path("podgroups", api=SIGS))


def test_odd_statuses_and_unknown_fields_do_no_harm(world, loose_sigs):
    world.nodes(1)
    odd = {
        "text": "Running",
        "null": None,
        "list": [1],
        "wrong": {"phase": 7, "running": "many", "occupiedBy": {}, "conditions": "none"},
    }
    for name, status in odd.items():
        create_bad(world, name, {"minMember": 1, "unknown": {"deep": [{"er": 1}]}}, extra=1)
        world.patch_group(name, {"status": status}, f"{SIGS}")
        world.create_pods(SHAPES["sigs"].pods(name, 1))
    world.wait_bound(4)
    world.wait_status("wrong", SIGS, phase="Running", running=1)
    world.cluster.delete(world.path("podgroups", api=SIGS))


def test_junk_annotations_and_odd_names_do_no_harm(world):
    world.nodes(1)
    junk = {
        "quorate.dev/attempt": "\u0000\u202e{}[]",
        "quorate.dev/attempt-size": "-1e999",
        "scheduling.volcano.sh/queue-name": "\n\t" * 50,
        "example.com/large": "x" * 200_000,
    }
    world.create_pods(world.gang("g", 2, annotations=junk))
    world.wait_bound(2)
    world.create_pod(pod("empty", labels={"scheduling.x-k8s.io/pod-group": ""}))
    world.wait_event("GangLabels", "label scheduling.x-k8s.io/pod-group is empty")
    world.wait_bound(3)


@pytest.mark.parametrize(
    "name", ["../../../etc/passwd", "n" * 100_000, "a b\nc\u202e", "%2e%2e%2fpods", "{}'\"; --"]
)
def test_a_gang_name_that_no_object_can_have_is_told_in_a_short_sentence(world, name):
    world.nodes(1)
    annotations = {"scheduling.k8s.io/group-name": name}
    world.create_pod(pod("lost", scheduler="volcano", annotations=annotations))
    wait_for(world.conditions, "a condition")
    ((reason, sentence),) = world.conditions()
    assert reason == "GangNameInvalid"
    assert len(sentence) <= 1024
    assert sentence.isprintable()
    note = world.wait_event("FailedScheduling", "annotation scheduling.k8s.io/group-name is ")
    assert note == sentence
    world.create_pods(world.gang("good", 2))
    world.wait_bound(2, "gang=good")


def test_an_owner_by_a_name_that_no_object_can_have_ends_no_command(world):
    """``gangs`` and ``why`` ended in a traceback, for all who list that namespace.

    The owner is of a kind that is not there, or the garbage collector would delete the pod; that of
    the embedded cluster looks at the uid alone.
    """
    world.nodes(1)
    world.apply(pod_group("g", 2))
    owner = {"kind": "Deployment", "apiVersion": "apps/..", "name": "..", "controller": True}
    owner["uid"] = world.group("g")["metadata"]["uid"]
    world.create_pods(gang_pods("g", 1))
    told = world.wait_condition("1 of 2 members exist")
    lone = pod("lone", nodeSelector={"no": "node"}, metadata={"ownerReferences": [owner]})
    world.create_pod(lone)  # its owner is asked whether it names the gang that lacks a member
    world.wait_condition("didn't match Pod's node affinity/selector")
    for command in (("why", "g"), ("why", "lone"), ("gangs", "--pods")):
        done = world.quorate_cli(*command, "-n", world.namespace)
        assert (done.returncode, done.stderr) == (0, "")
    assert world.why("g")["message"] == told


def test_requests_beyond_any_number_are_held_with_a_reason(world):
    world.nodes(1)
    world.create_pod(pod("huge", requests={"memory": "9223372036854775807"}))
    world.create_pod(pod("huger", requests={"memory": "99999999999999999E"}))
    wait_for(lambda: len(world.conditions()) == 2, "both are told")
    world.create_pods(world.gang("good", 2))
    world.wait_bound(2, "gang=good")
    assert world.bound() == 2


@pytest.fixture
def dead_end(cluster, tmp_path) -> str:
    """A kubeconfig of a server that nobody is."""
    text = cluster.kubeconfig.read_text().replace(
        cluster.server, f"https://127.0.0.1:{free_port()}"
    )
    path = tmp_path / "dead.yaml"
    path.write_text(text)
    return str(path)


def test_a_scheduler_without_a_cluster_says_so_in_readyz_and_stops_when_told(
    quorate, dead_end, tmp_path
):
    lonely = copy.copy(quorate)
    lonely.port, lonely.kubeconfig = free_port(), dead_end
    lonely.config_file = tmp_path / "lonely.yaml"
    lonely.config_file.write_text(
        yaml.safe_dump({**CONFIG, "healthAddress": f"127.0.0.1:{lonely.port}"})
    )
    lonely.log_file = tmp_path / "lonely.log"
    lonely.start(wait_ready=False)
    wait_for(lambda: lonely.page("/readyz").startswith("not listed yet: "), "unready")
    wait_for(lambda: "/api/v1/nodes (" in lonely.page("/readyz"), "it says why")
    assert lonely.page("/healthz") == "ok"
    wait_for(lambda: "watches in trouble" in lonely.log(), "the log says so")
    assert lonely.stop() == 0
    assert not lonely.complaints()
    assert all(json.loads(line) for line in lonely.log().splitlines())
