"""What a person types: why, gangs, manifests; and what the scheduler's account may and may not."""

import json
import signal
import subprocess
import sys

import pytest

from tools.objects import gang_pods, pod
from tools.testing import command_line, manifests, wait_for

ACCOUNT = "system:serviceaccount:quorate-system:quorate"


@pytest.fixture
def waiting(world):
    world.nodes(2, allocatable={"cpu": "2"})
    world.create_pods(world.gang("train", 6))
    world.wait_condition("6 members must start together and 4 fit")
    return world


def test_why_says_the_sentence_the_facts_and_the_remedy(waiting):
    done = waiting.quorate_cli("why", "train", "-n", waiting.namespace)
    assert done.returncode == 0
    assert done.stderr == ""
    lines = [line.strip() for line in done.stdout.splitlines()]
    name = f"{waiting.namespace}/train"
    assert lines[0] == (
        f"Gang {name} (PodGroup, scheduling.x-k8s.io/v1alpha1): Waiting, NotEnoughRoom"
    )
    assert lines[1] == waiting.wait_condition("6 members must start together")
    assert "members   6 needed, 6 exist, 0 bound, 0 running" in lines
    assert "pods like train-0: 4 of 6 fit now" in lines
    assert "2 nodes: Insufficient cpu once 4 members are placed" in lines
    assert any(line.startswith("hint      add nodes with ") for line in lines)


def test_why_as_json_holds_the_same_facts(waiting):
    facts = waiting.why("train")
    assert (facts["apiVersion"], facts["kind"]) == ("quorate.dev/v1alpha1", "Gang")
    assert facts["api"] == "x-k8s"
    assert facts["metadata"]["namespace"] == waiting.namespace
    assert facts["metadata"]["name"] == "train"
    assert (facts["state"], facts["reason"]) == ("Waiting", "NotEnoughRoom")
    assert facts["nodes"] == 2
    assert facts["members"]["min"] == 6
    assert facts["members"]["waiting"] == 6
    (blocker,) = facts["blockers"]
    assert (blocker["pods"], blocker["fit"]) == (6, 4)
    message = "Insufficient cpu once 4 members are placed"
    assert blocker["ruledOut"] == [{"message": message, "nodes": 2}]
    assert facts["schedulerLeads"] is True


def test_why_of_a_single_pod_and_of_a_gang_that_runs(world):
    world.nodes(1)
    world.create_pods(world.gang("g", 2), [pod("alone")])
    wait_for(lambda: world.running() == 3, "all run")
    assert world.why("g")["message"] == "all 2 members that exist have a node"
    assert (world.why("g")["state"], world.why("g")["reason"]) == ("Started", "")
    assert world.why("alone")["message"] == "the pod has its node"


def row_of_gang(world) -> list[str]:
    """Return name, state, members and min of the one gang that ``gangs`` lists."""
    done = world.quorate_cli("gangs", "-n", world.namespace)
    _, row = done.stdout.splitlines()
    return row.split()[:4]


def test_why_of_a_gang_whose_earlier_life_is_over_says_what_its_condition_says(world):
    """It said "Starting: there is room", for it knew neither lives nor what had started."""
    world.nodes(1)
    world.create_pods(world.gang("g", 3))
    wait_for(lambda: world.running() == 3, "it has started")
    for name, phase in (("g-0", "Succeeded"), ("g-1", "Succeeded"), ("g-2", "Failed")):
        world.patch(f"{world.path('pods', name)}/status", {"status": {"phase": phase}})
    world.create_pods(gang_pods("g", 4)[3:])
    sentence = world.wait_condition("1 of 3 members exist")
    assert world.wait_event("FailedScheduling", sentence) == sentence
    found = world.why("g")
    assert (found["state"], found["reason"]) == ("Waiting", "NotEnoughMembers")
    assert found["message"] == sentence
    assert row_of_gang(world)[:2] == ["g", "Waiting"]


def test_a_started_gang_stays_started_while_a_replacement_has_no_room(world):
    """``gangs`` said "Waiting 3/4" and ``why`` "1 member must start now"."""
    nodes = world.nodes(4, allocatable={"cpu": "1"})
    world.create_pods(world.gang("g", 4, requests={"cpu": "1"}))
    wait_for(lambda: world.running() == 4, "it has started")
    [lost] = [name for name, node in world.where().items() if node == nodes[0]]
    world.cordon(nodes[0])
    world.delete_pod(lost, wait=True)
    world.create_pods(gang_pods("g", 5, requests={"cpu": "1"})[4:])
    sentence = world.wait_condition("0 of 1 more member fits")
    found = world.why("g")
    assert (found["state"], found["reason"]) == ("Started", "NotEnoughRoom")
    assert (found["message"], found["hint"]) == (sentence, f"uncordon {nodes[0]}")
    assert world.wait_event("FailedScheduling", sentence) == sentence
    assert row_of_gang(world) == ["g", "Started", "3/4", "4"]


def test_gangs_have_their_gpus_and_their_place_in_line(world):
    """A list of gangs told neither what they ask for nor which of them comes first."""
    world.nodes(1, allocatable={"nvidia.com/gpu": "8"})
    gpus = {"requests": {"nvidia.com/gpu": "4"}}
    world.create_pods(world.gang("first", 2, **gpus))
    wait_for(lambda: world.running() == 2, "it has all GPUs")
    high = {"priorityClassName": "system-cluster-critical"}
    world.create_pods(world.gang("later", 2, **gpus), world.gang("urgent", 3, **gpus, **high))
    world.create_pods(world.gang("half", 2, **gpus)[:1])
    for name in ("later", "urgent", "half"):
        wait_for(lambda name=name: world.why(name)["reason"], f"{name} is told why it waits")
    done = world.quorate_cli("gangs", "-n", world.namespace, "--sort-by=place")
    found = [(row[0], *row[4:6]) for row in map(str.split, done.stdout.splitlines())]
    assert found[:3] == [("GANG", "GPUS", "PLACE"), ("urgent", "12", "1/2"), ("later", "8", "2/2")]
    assert sorted(found[3:]) == [("first", "8", "-"), ("half", "4", "-")]
    assert world.why("later")["line"] == {"place": 2, "length": 2, "namespace": world.namespace}


def test_a_gang_that_lost_a_plain_member_for_good_is_started(world):
    """``gangs`` said "Waiting 2/2, NotEnoughMembers" of a gang of which two run."""
    world.nodes(1)
    world.create_pods(world.gang("g", 3, 2))
    wait_for(lambda: world.running() == 3, "it has started")
    world.delete_pod("g-1", wait=True)
    found = world.why("g")
    assert (found["state"], found["reason"], found["members"]["total"]) == ("Started", "", 2)
    assert row_of_gang(world) == ["g", "Started", "2/2", "2"]


def test_view_in_a_namespace_is_enough_for_why_and_gangs_there(waiting):
    """They asked for nodes, and sixteen kinds more, in all namespaces, one after another."""
    cluster, here, rbac = waiting.cluster, waiting.namespace, "rbac.authorization.k8s.io"
    waiting.apply(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reader"}},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "reader"},
            "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": here}],
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "view"},
        },
    )
    token = cluster.service_account_token(here, "reader")
    kubeconfig = cluster.kubeconfig_for(token, name="reader")

    def asked(*words: str) -> subprocess.CompletedProcess:
        line = command_line(*words, f"--kubeconfig={kubeconfig}")
        return subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)

    wait_for(lambda: asked("gangs", "-n", here).returncode == 0, "the role is bound")
    by_user, by_admin = (
        json.loads(done.stdout)
        for done in (
            asked("why", "train", "-n", here, "-o", "json"),
            waiting.quorate_cli("why", f"{here}/train", "-o", "json"),
        )
    )
    assert by_user["schedulerLeads"] is None, "it may not read the Lease"
    assert by_user | {"schedulerLeads": True} == by_admin
    done = asked("gangs", "-A")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(
        "Error: not permitted to list and watch events, podgroups.scheduling.k8s.io, "
        "podgroups.scheduling.sigs.k8s.io, podgroups.scheduling.volcano.sh, "
        "podgroups.scheduling.x-k8s.io and pods in the whole cluster: "
    )
    assert done.stderr.endswith("or look in one namespace: -n NAMESPACE.\n")
    assert done.stderr.count("\n") == 1


def test_what_the_leader_owns_is_shown_without_its_configuration(world):
    """It started, was absent from ``gangs``, and ``why`` of its pod said that it is not ours."""
    world.nodes(1)
    world.scheduler = "scheduler-plugins-scheduler"
    world.create_pods(world.gang("theirs", 2))
    wait_for(lambda: world.running() == 2, "it has started")
    where = (f"--kubeconfig={world.cluster.kubeconfig}", "-n", world.namespace)
    line = command_line("gangs", *where)
    listed = subprocess.run(line, capture_output=True, text=True, timeout=60, check=True)
    assert listed.stdout.splitlines()[1].split()[:3] == ["theirs", "Started", "2/2"]
    line = command_line("why", "pod/theirs-0", *where)
    assert subprocess.run(line, capture_output=True, timeout=60, check=False).returncode == 0


def test_gangs_lists_state_members_age_and_reason(waiting):
    waiting.nodes(1, prefix=f"{waiting.namespace}-other-", allocatable={"cpu": "1"})
    waiting.create_pods(waiting.gang("done", 1))
    waiting.wait_bound(1)
    done = waiting.quorate_cli("gangs", "-n", waiting.namespace)
    assert done.returncode == 0
    head, *rows = done.stdout.splitlines()
    assert head.split() == ["GANG", "STATE", "MEMBERS", "MIN", "GPUS", "PLACE", "AGE", "REASON"]
    cells = [row.split() for row in rows]
    assert [row[:6] for row in cells] == [
        ["done", "Started", "1/1", "1", "-", "-"],
        ["train", "Waiting", "0/6", "6", "-", "1/1"],
    ]
    assert cells[1][6].endswith("s")
    assert cells[1][7] == "NotEnoughRoom"


def test_a_watch_prints_each_change_until_ctrl_c(waiting):
    """There was no ``-w``."""
    line = [sys.executable, "-m", "quorate.cli", "gangs", "-w", "-n", waiting.namespace]
    line += ["--kubeconfig", str(waiting.cluster.kubeconfig)]
    line += ["--config", str(waiting.quorate.config_file)]
    with subprocess.Popen(
        line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as watching:
        assert watching.stdout.readline().split()[:2] == ["GANG", "STATE"]
        assert watching.stdout.readline().split()[:4] == ["train", "Waiting", "0/6", "6"]
        waiting.nodes(1, prefix=f"{waiting.namespace}-more-")
        seen = []
        while not seen or seen[-1][1:3] != ["Started", "6/6"]:
            seen.append(watching.stdout.readline().split())
            assert seen[-1][0] == "train"
        watching.send_signal(signal.SIGINT)
        _, err = watching.communicate(timeout=30)
    assert (watching.returncode, err) == (130, "")


def test_nodes_show_who_has_the_gpus_and_which_nodes_take_no_pods(world):
    """Nothing showed nodes and free GPUs."""
    world.nodes(2, allocatable={"nvidia.com/gpu": "4"})
    (cordoned,) = world.nodes(
        1, prefix=f"{world.namespace}-shut-", allocatable={"nvidia.com/gpu": "4"}
    )
    world.cordon(cordoned)
    world.create_pods(world.gang("train", 2, requests={"nvidia.com/gpu": "3"}))
    world.wait_bound(2)
    done = world.quorate_cli("nodes")
    assert (done.returncode, done.stderr) == (0, "")
    assert "GPUs:  12 (3 x 4): 6 in use, 2 free, 4 out of reach" in done.stdout
    rows = [row.split() for row in done.stdout.splitlines() if row.startswith(world.namespace)]
    assert sorted(row[1:7] for row in rows) == [
        ["cordoned", "x", "x", "x", "x", "4/4"],
        ["ready", "A", "A", "A", "·", "1/4"],
        ["ready", "A", "A", "A", "·", "1/4"],
    ]
    assert f"A  {world.namespace}/train: 6 GPUs on 2 nodes" in done.stdout


@pytest.mark.core
@pytest.mark.real
def test_manifests_apply_cleanly_and_once_more_change_nothing(cluster, quorate):
    text = manifests()
    dry = cluster.kubectl("apply", "--dry-run=server", "-f", "-", input=text)
    assert "deployment.apps/quorate created (server dry run)" in dry
    assert "Warning" not in dry
    without_deployment = manifests("--only", "crds", "--only", "rbac", "--only", "flowschema")
    cluster.kubectl("apply", "-f", "-", input=without_deployment)
    again = cluster.kubectl("apply", "-f", "-", input=without_deployment)
    assert {line.split()[-1] for line in again.splitlines()} == {"unchanged"}


ALLOWED = [
    "list pods",
    "watch nodes",
    "create pods/binding",
    "patch pods/status",
    "create pods/eviction",
    "create events.events.k8s.io",
    "patch events.events.k8s.io",
    "watch podgroups.scheduling.x-k8s.io",
    "patch podgroups.scheduling.x-k8s.io/status",
    "patch podgroups.scheduling.sigs.k8s.io",
    "get deployments.apps",
    "get jobs.batch",
    "update leases.coordination.k8s.io/quorate -n quorate-system",
]
FORBIDDEN = [
    "get secrets",
    "list secrets -A",
    "get configmaps",
    "create pods",
    "delete pods",
    "update pods",
    "patch pods",
    "delete nodes",
    "patch nodes",
    "patch nodes/status",
    "create podgroups.scheduling.x-k8s.io",
    "patch podgroups.scheduling.x-k8s.io",
    "delete podgroups.scheduling.sigs.k8s.io",
    "patch deployments.apps",
    "list deployments.apps",
    "delete events.events.k8s.io",
    "create serviceaccounts/token",
    "impersonate users",
    "create clusterrolebindings.rbac.authorization.k8s.io",
    "update leases.coordination.k8s.io/other -n quorate-system",
    "update leases.coordination.k8s.io/quorate -n default",
    "delete leases.coordination.k8s.io/quorate -n quorate-system",
]


@pytest.mark.core
@pytest.mark.real
@pytest.mark.parametrize(("said", "rights"), [("yes", ALLOWED), ("no", FORBIDDEN)])
def test_the_account_may_what_it_needs_and_nothing_else(cluster, quorate, said, rights):
    answers = {right: may(cluster, *right.split()) for right in rights}
    assert answers == dict.fromkeys(rights, said)


def may(cluster, verb: str, what: str, *where: str) -> str:
    resource, _, sub = what.partition("/")
    args = [verb, resource, f"--as={ACCOUNT}", *where]
    if sub and "leases" in resource:
        args[1] = what  # TYPE/NAME
    elif sub:
        args.append(f"--subresource={sub}")
    return cluster.kubectl("auth", "can-i", *args, check=False).strip()


@pytest.mark.parametrize("scheduler", ["quorate", "cw-coscheduler"])
def test_events_are_the_default_schedulers_in_name_and_words(world, scheduler):
    (node,) = world.nodes(1, allocatable={"cpu": "1"})
    world.create_pod(pod("fits", scheduler=scheduler))
    world.wait_event("Scheduled", f"Successfully assigned {world.namespace}/fits to {node}")
    world.create_pod(pod("waits", scheduler=scheduler))
    note = world.wait_event("FailedScheduling", "Insufficient cpu")
    assert note == "0/1 nodes are available: 1 Insufficient cpu."
    by_reason = {event["reason"]: event for event in world.all_events()}
    for reason, kind, action in (
        ("Scheduled", "Normal", "Binding"),
        ("FailedScheduling", "Warning", "Scheduling"),
    ):
        event = by_reason[reason]
        assert event["reportingController"] == scheduler
        assert event["reportingInstance"]
        assert (event["type"], event["action"]) == (kind, action)
        assert event["regarding"]["kind"] == "Pod"
    world.wait_condition(note)  # the Event comes before it
    (condition,) = world.pod("waits")["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("PodScheduled", "False")
    assert (condition["reason"], condition["message"]) == ("Unschedulable", note)
