"""Draw storage for random cases: claims, volumes, classes, limits; and the volumes of pods."""

from __future__ import annotations

from tools.parity.choice import Choice, Object

ZONE, DISK = "topology.kubernetes.io/zone", "disk"
DRIVER, OTHER_DRIVER = "csi.example", "other.csi.example"
CLASSES = ("fast", "local", "now")
SIZES = ("1Gi", "5Gi", "10Gi")
CLAIMS = ("c0", "c1", "c2", "c3")
FOR_ONE_POD = ("c2", "c3")
VOLUMES = ("v0", "v1", "v2", "v3", "v4", "v5")
SELECTED = "volume.kubernetes.io/selected-node"
COMPLETED = "pv.kubernetes.io/bind-completed"
NO_PROVISIONER = "kubernetes.io/no-provisioner"


def give_volumes(choice: Choice, pod: Object) -> None:
    """Give a pod claims, rarely one that does not exist."""
    namespace = pod["metadata"]["namespace"]
    volumes: list[Object] = [
        {"persistentVolumeClaim": {"claimName": _name_in(namespace, claim)}}
        for claim in CLAIMS
        if choice.chance(25)
    ]
    if choice.chance(4):
        volumes.append({"persistentVolumeClaim": {"claimName": "absent"}})
    if choice.chance(4):
        volumes.append({"ephemeral": {"volumeClaimTemplate": {"spec": {}}}})
    if volumes:
        pod["spec"]["volumes"] = [
            {"name": f"vol{index}", **volume} for index, volume in enumerate(volumes)
        ]


def storage(choice: Choice, nodes: list[str], namespaces: tuple[str, ...]) -> list[Object]:
    """Return storage objects that fit together in most cases, and not in some."""
    claims = [_claim(choice, name, namespace, nodes) for namespace in namespaces for name in CLAIMS]
    _keep_one_open(choice, claims)
    by_volume = {one["spec"]["volumeName"]: one for one in claims if "volumeName" in one["spec"]}
    found = [*claims, *_classes(choice)]
    found += [
        _volume(choice, index, by_volume.get(name), nodes)
        for index, name in enumerate(VOLUMES)
        if not choice.chance(5)
    ]
    found += [_csi_node(choice, node) for node in (*nodes, "gone") if not choice.chance(20)]
    return found


def _object(version: str, kind: str, name: str, **fields: object) -> Object:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **fields}


def _name_in(namespace: str, claim: str) -> str:
    """Return what a claim is called: one that may be for one pod has its name for itself.

    Of claims of one name in several namespaces kube-scheduler loses count (``named``).
    """
    return f"{claim}-{namespace}" if claim in FOR_ONE_POD else claim


def _claim(choice: Choice, name: str, namespace: str, nodes: list[str]) -> Object:
    modes = ("ReadWriteMany", "ReadWriteOncePod" if name in FOR_ONE_POD else "ReadWriteOnce")
    spec: Object = {
        "accessModes": [choice.pick(modes)],
        "resources": {"requests": {"storage": choice.pick(SIZES)}},
        "volumeMode": "Block" if choice.chance(8) else "Filesystem",
    }
    if not choice.chance(8):
        # A class that binds at once, or does not exist, leaves little to compare.
        names = ("fast", "local", "fast", "local", "fast", "local", "now", "absent")
        spec["storageClassName"] = choice.pick(names)
    if choice.chance(10):
        spec["selector"] = {"matchLabels": {"tier": choice.pick(("front", "back"))}}
    notes: Object = {}
    if choice.chance(45):
        spec["volumeName"] = choice.pick(VOLUMES)
        if not choice.chance(8):
            notes[COMPLETED] = "yes"
    elif choice.chance(15):
        notes[SELECTED] = choice.pick((*nodes, "gone"))
    found = _object("v1", "PersistentVolumeClaim", _name_in(namespace, name), spec=spec)
    found["metadata"] |= {"namespace": namespace, "uid": f"{namespace}/{name}"}
    if notes:
        found["metadata"]["annotations"] = notes
    if choice.chance(3):
        found["status"] = {"phase": "Lost"}
    if choice.chance(3):
        found["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        found["metadata"]["finalizers"] = ["kubernetes.io/pvc-protection"]
    return found


def _keep_one_open(choice: Choice, claims: list[Object]) -> None:
    """Leave one claim of a class open in a namespace: a pod may not have more (limits.md)."""
    seen = set()
    for claim in claims:
        meta, spec = claim["metadata"], claim["spec"]
        kind = meta["namespace"], spec.get("storageClassName")
        if "volumeName" in spec or SELECTED in meta.get("annotations", {}):
            continue
        if kind in seen:
            spec["volumeName"] = choice.pick(VOLUMES)
            meta["annotations"] = {COMPLETED: "yes"}
        seen.add(kind)


def _classes(choice: Choice) -> list[Object]:
    found = []
    for name in CLASSES:
        provisioner = NO_PROVISIONER if name == "local" else DRIVER
        one = _object(
            "storage.k8s.io/v1",
            "StorageClass",
            name,
            provisioner=provisioner,
            volumeBindingMode="Immediate" if name == "now" else "WaitForFirstConsumer",
        )
        if choice.chance(25):
            zones = {"key": ZONE, "values": [choice.pick(("a", "b")), "c"]}
            one["allowedTopologies"] = [{"matchLabelExpressions": [zones]}]
        found.append(one)
    return found


def _volume(choice: Choice, index: int, claim: Object | None, nodes: list[str]) -> Object:
    """Return a volume; no two have one size, for of such ones kube-scheduler takes any."""
    name = VOLUMES[index]
    size = int(choice.pick(SIZES).removesuffix("Gi"))
    spec: Object = {
        "capacity": {"storage": f"{size * 1024 + index}Mi"},
        "accessModes": ["ReadWriteOnce", "ReadWriteMany", "ReadWriteOncePod"],
        "storageClassName": choice.pick(("fast", "local", "local")),
        "volumeMode": "Block" if choice.chance(8) else "Filesystem",
    }
    if choice.chance(20):
        spec["accessModes"] = ["ReadWriteOnce"]
    labels: Object = {"tier": choice.pick(("front", "back"))}
    if choice.chance(35):
        labels[ZONE] = choice.pick(("a", "b", "a__b"))
    if choice.chance(10):
        labels["failure-domain.beta.kubernetes.io/zone"] = choice.pick(("a", "c"))
    if choice.chance(45):
        expression = choice.pick(
            (
                {"key": "kubernetes.io/hostname", "operator": "In", "values": nodes[:2]},
                {"key": ZONE, "operator": "In", "values": ["a", "c"]},
                {"key": DISK, "operator": "NotIn", "values": ["ssd"]},
            )
        )
        spec["nodeAffinity"] = {
            "required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
        }
    spec |= choice.pick(
        (
            {"csi": {"driver": DRIVER, "volumeHandle": name}},
            {"csi": {"driver": DRIVER, "volumeHandle": "shared"}},
            {"csi": {"driver": OTHER_DRIVER, "volumeHandle": name}},
            {"local": {"path": "/mnt"}},
        )
    )
    phase = "Available" if not choice.chance(10) else "Released"
    if claim is not None:
        meta = claim["metadata"]
        spec["claimRef"] = {key: meta[key] for key in ("namespace", "name", "uid")}
        phase = "Bound"
        if choice.chance(5):  # an earlier claim of that name
            spec["claimRef"]["uid"] = "another"
    elif choice.chance(15):
        spec["claimRef"] = {"namespace": "default", "name": choice.pick(CLAIMS)}
    found = _object("v1", "PersistentVolume", name, spec=spec, status={"phase": phase})
    found["metadata"]["labels"] = labels
    if choice.chance(3):
        found["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        found["metadata"]["finalizers"] = ["kubernetes.io/pv-protection"]
    return found


def _csi_node(choice: Choice, node: str) -> Object:
    drivers = []
    for name in (DRIVER, OTHER_DRIVER):
        if choice.chance(60):
            one: Object = {"name": name, "nodeID": node}
            if not choice.chance(15):
                one["allocatable"] = {"count": choice.number(0, 3)}
            drivers.append(one)
    return _object("storage.k8s.io/v1", "CSINode", node, spec={"drivers": drivers})
