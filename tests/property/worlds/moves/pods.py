"""Moves of pods and gangs: who makes them, what becomes of them, what kubelets say."""

from __future__ import annotations

import msgspec

from quorate.core.model import GangSpec, Meant, Membership, Owner, Pod
from tests.property.worlds.moves import devices, storage
from tests.property.worlds.shapes import has_cron_job, pod_labels, random_spec
from tests.unit.core.world import LABELS, TEAM, VOLCANO

REFUSALS = ("OutOfcpu", "UnexpectedAdmissionError", "NodeAffinity")
TASKS = ("master", "worker", "")
PRIORITIES = (0, 0, 1, 5, 10)
RUN = 40
"""After so many objects each gang has another owner: half of them are the next run of a CronJob."""


def maker(key, number):
    """The owner that a pod names: some share their run, by a uid that is not theirs."""
    is_other = number % 2 and not has_cron_job(key)
    kind = ("apps/v1", "Deployment") if is_other else ("batch/v1", "Job")
    return Owner(*kind, f"{key.name}-{number // RUN}")


REPLICAS = Owner("apps/v1", "ReplicaSet", "web")


def make_pod(world, chance, key=None, scheduler="quorate", **fields):
    """Add a pod to the API server, after the objects that it names."""
    number = world.server.number()
    uid = f"u{number}"
    task = chance.choice(TASKS) if key and key.dialect == VOLCANO else ""
    spec = fields.pop("spec", None) or random_spec(chance, world.setting.taste)
    pod = Pod(
        uid=uid,
        namespace=key.namespace if key else fields.pop("namespace", TEAM),
        name=f"p{number}",
        scheduler=scheduler,
        spec=spec,
        created_s=float(number),
        membership=membership(world, key, task) if key else None,
        owner=maker(key, number) if key else fields.pop("owner", None),
        run=f"{key.name}-{number // RUN}" if key else "",
        labels=fields.pop("labels", None) or pod_labels(chance, world.setting.taste),
        **fields,
    )
    if chance.random() < world.setting.taste.volumes:
        pod = storage.with_claims(world, chance, pod)
    if chance.random() < world.setting.taste.devices:
        pod = devices.with_claims(world, chance, pod)
    world.server.put_pod(pod)
    if key:
        world.server.put_owner(key.namespace, pod.owner, key.name * has_cron_job(key))
    return pod


def membership(world, key, task=""):
    if key.dialect != LABELS:
        return Membership(key, task=task)
    return Membership(key, world.setting.label_mins[key])


def some_pod(world, chance, holds=lambda pod: True):
    """Return a pod for which this holds, or None."""
    found = [pod for pod in world.server.pods.values() if holds(pod)]
    return chance.choice(found) if found else None


# Gangs


def members(world, chance):
    """An owner makes several alike members; some wait for a gate."""
    key = chance.choice(world.setting.gangs)
    setting = world.setting
    fields = {
        "scheduler": setting.schedulers.get(key, "quorate"),
        "priority": setting.priorities.get(key, 0),
        "labels": pod_labels(chance, setting.taste),
        "hold_s": chance.choice([None, None, None, 0.0, 40.0]),
    }
    specs = [random_spec(chance, setting.taste) for _ in range(chance.choice([1, 1, 1, 2]))]
    for index in range(chance.randint(1, setting.members_max)):
        gated = chance.random() < setting.gates
        fields["gates"] = ("g",) if gated else ()
        make_pod(world, chance, key, spec=specs[index % len(specs)], **fields)


def whole_gang(world, chance):
    """All that a gang needs comes at once."""
    key = chance.choice(world.setting.gangs)
    spec = world.server.specs.get(key)
    minimum = spec.min_count if spec else world.setting.label_mins.get(key, 2)
    labels = pod_labels(chance, world.setting.taste)
    pod_spec = random_spec(chance, world.setting.taste)
    of_gang = {
        "scheduler": world.setting.schedulers.get(key, "quorate"),
        "priority": world.setting.priorities.get(key, 0),
    }
    for _ in range(min(max(1, minimum), 12)):
        make_pod(world, chance, key, spec=pod_spec, labels=labels, **of_gang)


def odd_member(world, chance):
    """A member that disagrees with the others, or that cannot be read."""
    key = chance.choice(world.setting.gangs)
    kind = chance.choice(["priority", "scheduler", "defect", "gate"])
    fields = {
        "priority": {"priority": 7},
        "scheduler": {"scheduler": chance.choice(["default-scheduler", "others"])},
        "defect": {"defect": "spec is odd", "defect_reason": "PodInvalid"},
        "gate": {"gates": ("g",)},
    }
    make_pod(world, chance, key, **fields[kind])


def spec(world, chance):
    """A gang's object comes or is edited."""
    key = chance.choice([key for key in world.setting.gangs if key.dialect != LABELS])
    minimum = chance.choice([0, 1, 2, 2, 3, 3, 4, world.setting.members_max])
    put_spec(world, chance, key, minimum)


def first_specs(world, chance):
    """Most gangs have an object from the beginning."""
    for key in world.setting.gangs:
        if key.dialect != LABELS and chance.random() < 0.85:
            put_spec(world, chance, key, chance.choice([1, 2, 2, 3]))


def put_spec(world, chance, key, minimum):
    before = world.server.specs.get(key)
    world.server.put_spec(
        GangSpec(
            key=key,
            min_count=minimum,
            min_resources=chance.choice([(), (), (), (("cpu", chance.randint(1, 9)),)]),
            created_s=before.created_s if before else float(world.server.number()),
            timeout_s=chance.choice([None, None, 5.0]),
            hold_s=chance.choice([None, None, 0.0, 60.0]),
            min_by_task=random_tasks(chance, minimum) if key.dialect == VOLCANO else (),
            defect="" if chance.random() < 0.97 else "spec.minMember is odd",
        )
    )


def random_tasks(chance, minimum):
    """Minima of tasks that sum up to no more than the gang's."""
    if chance.random() < 0.6:
        return ()
    left, found = minimum, []
    for task in chance.sample(TASKS[:2], chance.choice([1, 2])):
        if left > 0:
            found.append((task, chance.randint(1, left)))
            left -= found[-1][1]
    return tuple(sorted(found))


def drop_spec(world, chance):
    if world.server.specs:
        world.server.remove_spec(chance.choice(sorted(world.server.specs)))


def owner(world, chance):
    key = chance.choice(world.setting.gangs)
    world.server.scale_owners(key, chance.choice([None, 0, 1, 3, 8]))


def restart_gang(world, chance):
    """All members fail at once, are kept or deleted, and as many new ones come."""
    key = chance.choice(world.setting.gangs)
    old = [p for p in world.server.pods.values() if p.membership and p.membership.key == key]
    kept = chance.random() < 0.6
    for pod in old:
        if pod.node and kept:
            world.server.edit_pod(pod.uid, phase="Failed")
        else:
            world.server.remove_pod(pod.uid)
    for pod in old:
        if not pod.finished:
            fields = ("spec", "labels", "priority", "scheduler", "hold_s")
            alike = {name: getattr(pod, name) for name in fields}
            make_pod(world, chance, key, **alike)


def replace_lost(world, chance):
    """An owner makes a new pod for one that failed or is gone."""
    lost = some_pod(world, chance, lambda pod: pod.membership is not None)
    if lost is not None:
        fields = ("spec", "labels", "priority", "scheduler", "hold_s")
        alike = {name: getattr(lost, name) for name in fields}
        if chance.random() < 0.7:
            world.server.remove_pod(lost.uid)
        make_pod(world, chance, lost.membership.key, **alike)


# Single pods


def single(world, chance):
    """A pod of no gang, of the gangs' profile."""
    make_pod(world, chance, priority=chance.choice(PRIORITIES), namespace=namespace(chance))


def misnamed(world, chance):
    """A Job makes pods of no gang that were meant for one, as it says itself, or they; or neither.

    Who made them is asked for with the first pod, and the answer may come after a decision.
    """
    key = chance.choice(world.setting.gangs)
    names = Meant(key, "label gang is read by no scheduler")
    job = Owner("batch/v1", "Job", f"misnamed-{world.server.number()}")
    says = chance.choice(["Job", "Job", "pods", "nobody"])
    fields = {"owner": job, "namespace": key.namespace}
    if says == "pods":
        fields |= {"meant": names, "defect": names.words, "defect_reason": "UnknownGangLabel"}
    for _ in range(chance.randint(1, 3)):
        make_pod(world, chance, **fields)
    if chance.random() < 0.5:
        world.decide(chance, 0.0)
    world.server.put_owner(key.namespace, job, "", names if says == "Job" else None)


def kube_single(world, chance):
    """A pod of no gang under a profile of kube-scheduler's."""
    fields = {
        "scheduler": chance.choice(world.setting.kube_schedulers),
        "priority": chance.choice(PRIORITIES),
        "never_preempts": chance.random() < 0.1,
        "namespace": namespace(chance),
        "owner": chance.choice([None, REPLICAS]),
    }
    for _ in range(chance.choice([1, 1, 2])):
        make_pod(world, chance, **fields)


def foreign(world, chance):
    """Another scheduler's pod, on a node or not yet."""
    node = chance.choice([*world.server.nodes, "gone", ""])
    phase = "Running" if node else "Pending"
    make_pod(world, chance, scheduler="others", node=node, phase=phase)


def namespace(chance):
    return chance.choice([TEAM, TEAM, TEAM, "dev"])


# What becomes of pods


def delete(world, chance):
    pod = some_pod(world, chance)
    if pod is not None:
        world.server.remove_pod(pod.uid)


def delete_bound(world, chance):
    pod = some_pod(world, chance, lambda pod: pod.node)
    if pod is not None:
        world.server.remove_pod(pod.uid)


def terminate(world, chance):
    pod = some_pod(world, chance, lambda pod: not pod.terminating)
    if pod is not None:
        world.server.edit_pod(pod.uid, terminating=True)


def end(world, chance):
    pod = some_pod(world, chance, lambda pod: pod.node and not pod.finished)
    if pod is not None:
        phase = chance.choice(["Running", "Running", "Succeeded", "Failed"])
        world.server.edit_pod(pod.uid, phase=phase)


def refuse(world, chance):
    """A kubelet refuses a pod that was bound to its node."""
    pod = some_pod(world, chance, lambda pod: pod.node and not pod.finished)
    if pod is not None:
        world.server.edit_pod(pod.uid, phase="Failed", refusal=chance.choice(REFUSALS))


def ungate(world, chance):
    pod = some_pod(world, chance, lambda pod: pod.gates)
    if pod is not None:
        world.server.edit_pod(pod.uid, gates=())


def relabel(world, chance):
    """A pod, bound or not, is moved into another gang, or out of any."""
    pod = some_pod(world, chance)
    if pod is not None:
        key = chance.choice([*world.setting.gangs, None])
        task = chance.choice(TASKS) if key and key.dialect == VOLCANO else ""
        named = membership(world, key, task) if key and key.namespace == pod.namespace else None
        world.server.edit_pod(pod.uid, membership=named)


def label(world, chance):
    pod = some_pod(world, chance)
    if pod is not None:
        world.server.edit_pod(pod.uid, labels=pod_labels(chance, world.setting.taste))


def resize(world, chance):
    """A running pod is resized in place; its node may be over by that."""
    pod = some_pod(world, chance, lambda pod: pod.node and not pod.finished)
    if pod is not None:
        requests = random_spec(chance, world.setting.taste).requests
        spec = msgspec.structs.replace(pod.spec, requests=requests)
        world.server.edit_pod(pod.uid, spec=spec)


def stale(world, chance):
    """The watch tells of a pod again."""
    pod = some_pod(world, chance)
    if pod is not None:
        world.server.put_pod(pod)


def nominate(world, chance):
    """Somebody else writes, or takes back, where a waiting pod shall go."""
    pod = some_pod(world, chance, lambda pod: not pod.node and pod.membership is None)
    if pod is not None:
        node = chance.choice([*world.server.nodes, ""])
        world.server.edit_pod(pod.uid, nominated=node)


MOVES = {
    move.__name__: move
    for move in (
        members,
        whole_gang,
        odd_member,
        spec,
        first_specs,
        drop_spec,
        owner,
        restart_gang,
        replace_lost,
        single,
        misnamed,
        kube_single,
        foreign,
        delete,
        delete_bound,
        terminate,
        end,
        refuse,
        ungate,
        relabel,
        label,
        resize,
        stale,
        nominate,
    )
}
