"""Draw random cases with devices: slices, classes and claims on top of a random cluster.

Few drivers, pools and attributes, so that requests match and compete. Answers that end in an error
at kube-scheduler (a broken expression) are compared by node only: it gives the pod up, quorate
leaves those nodes out.
"""

from __future__ import annotations

from tools.parity.cases import Choice, Object, draw_case

DRIVERS = ("gpu.example.com", "net.example.com")
SELECTORS = (
    'device.driver == "gpu.example.com"',
    'device.attributes["gpu.example.com"].model == "a"',
    '"model" in device.attributes["gpu.example.com"] && '
    'device.attributes["gpu.example.com"].model == "b"',
    'device.capacity["gpu.example.com"].memory.isGreaterThan(quantity("20Gi"))',
    'device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) <= 0',
    'device.attributes["gpu.example.com"].index < 2',
    'device.attributes["gpu.example.com"].?index.orValue(7) != 1',
    'device.attributes["gpu.example.com"].version.isGreaterThan(semver("1.2.0"))',
    'device.attributes["gpu.example.com"].absent == 1',
    'has(device.attributes["net.example.com"].speed)',
    'device.attributes["rack.example.com"].rack in ["r1", "r2"]',
    'device.attributes["gpu.example.com"].ok',
    'device.allowMultipleAllocations || device.driver.startsWith("net")',
    "true",
)
_NAME = "metadata.name"


def draw_device_case(choice: Choice) -> Object:
    """Return a case whose pending pod has claims."""
    case = draw_case(choice)
    nodes = [one["metadata"]["name"] for one in case["nodes"]]
    slices = _slices(choice, nodes)
    classes = [_class(choice, name) for name in ("any", "gpu", "picky")]
    devices = [
        (s["spec"]["driver"], s["spec"]["pool"]["name"], d["name"])
        for s in slices
        for d in s["spec"].get("devices", ())
    ]
    claims = [_others_claim(choice, i, nodes, devices) for i in range(choice.number(0, 5))]
    pod = case["pod"]
    namespace = pod["metadata"].get("namespace", "default")
    own, entries, statuses = _own_claims(choice, pod, nodes, devices)
    pod["spec"]["resourceClaims"] = entries
    pod.setdefault("status", {})["resourceClaimStatuses"] = statuses
    for one in (*claims, *own):
        one["metadata"].setdefault("namespace", namespace)
    # The score is known only where the rule itself was asked, which it is last of all.
    if choice.chance(80):
        for part in ("affinity", "nodeSelector", "topologySpreadConstraints"):
            pod["spec"].pop(part, None)
        case["pods"] = []
    _make_roomy(choice, case["nodes"])
    if choice.chance(15):
        pod["spec"] |= {"hostNetwork": True, "hostUsers": False}
    if choice.chance(10):
        rule = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [1]}}
        pod["spec"]["containers"][0]["restartPolicyRules"] = [rule]
    case["objects"] = [*case["objects"], *slices, *classes, *claims, *own]
    return case


def _make_roomy(choice: Choice, nodes: list[Object]) -> None:
    """Let only devices and declared features tell nodes apart."""
    for one in nodes:
        one["spec"].pop("taints", None)
        one["spec"].pop("unschedulable", None)
        one["status"]["allocatable"] |= {"cpu": "8", "memory": "16Gi", "pods": "110"}
        if choice.chance(20):
            features = ("RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport")
            one["status"]["declaredFeatures"] = [choice.pick(features)]


def _slices(choice: Choice, nodes: list[str]) -> list[Object]:
    found = []
    for node in nodes:
        for driver in DRIVERS:
            if choice.chance(70 if driver == DRIVERS[0] else 30):
                found += _pool(choice, driver, node, {"nodeName": node})
    return found


def _pool(choice: Choice, driver: str, pool: str, where: Object) -> list[Object]:
    """Return the slices of a pool; sometimes one is missing or out of date."""
    generation = choice.number(1, 2)
    count = choice.number(1, 2)
    slices = []
    for number in range(count):
        slices.append(_slice(driver, pool, f"{pool}-{driver[:3]}-{number}", where))
        slices[-1]["spec"]["devices"] = [
            _device(choice, driver, f"d{number}{i}") for i in range(choice.number(1, 3))
        ]
    for one in slices:
        one["spec"]["pool"] |= {"generation": generation, "resourceSliceCount": len(slices)}
    if choice.chance(8):
        slices.pop()
    if slices and choice.chance(6):
        slices[0]["spec"]["pool"]["generation"] = 3
    return slices


def _slice(driver: str, pool: str, name: str, where: Object) -> Object:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": {"driver": driver, "pool": {"name": pool}, **where},
    }


def _device(choice: Choice, driver: str, name: str) -> Object:
    attributes: Object = {"index": {"int": choice.number(0, 3)}}
    if not choice.chance(10):
        attributes["model"] = {"string": choice.pick(("a", "b"))}
    attributes["version"] = {"version": choice.pick(("1.2.0", "1.10.0", "2.0.0-rc.1"))}
    attributes["ok"] = {"bool": choice.chance(70)}
    if driver == DRIVERS[1]:
        attributes["speed"] = {"int": choice.pick((100, 400))}
    if not choice.chance(10):
        attributes["rack.example.com/rack"] = {"string": choice.pick(("r1", "r2", "r3"))}
    memory: Object = {"value": choice.pick(("10Gi", "40Gi", "80Gi"))}
    found: Object = {"name": name, "attributes": attributes, "capacity": {"memory": memory}}
    if choice.chance(15):
        effect = choice.pick(("NoSchedule", "NoExecute", "None"))
        found["taints"] = [{"key": choice.pick(("bad", "slow")), "value": "x", "effect": effect}]
    return found


def _class(choice: Choice, name: str) -> Object:
    count = {"any": 0, "gpu": 1, "picky": 2}[name]
    selectors = [choice.pick(SELECTORS) for _ in range(count)]
    spec: Object = {"selectors": [{"cel": {"expression": one}} for one in selectors]}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": spec,
    }


def _wanted(choice: Choice) -> Object:
    found: Object = {"deviceClassName": choice.pick(("any", "any", "gpu", "picky"))}
    if choice.chance(3):
        found["deviceClassName"] = "absent"
    if choice.chance(40):
        found["selectors"] = [{"cel": {"expression": choice.pick(SELECTORS)}}]
    if choice.chance(15):
        found["allocationMode"] = "All"
    else:
        found |= {"allocationMode": "ExactCount", "count": choice.number(1, 3)}
    if choice.chance(20):
        tolerated = choice.pick(({"key": "bad", "operator": "Exists"}, {"operator": "Exists"}))
        found["tolerations"] = [tolerated]
    return found


def _spec(choice: Choice) -> Object:
    requests = []
    for index in range(choice.number(1, 2)):
        name = f"r{index}"
        if choice.chance(30):
            subs = [{"name": f"s{i}", **_wanted(choice)} for i in range(choice.number(1, 3))]
            requests.append({"name": name, "firstAvailable": subs})
        else:
            requests.append({"name": name, "exactly": _wanted(choice)})
    return {"devices": {"requests": requests}}


def _claim(name: str, spec: Object) -> Object:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": spec,
    }


def _given(
    choice: Choice, nodes: list[str], devices: list[tuple[str, str, str]], request: str
) -> Object:
    driver, pool, device = choice.pick(devices)
    result: Object = {"request": request, "driver": driver, "pool": pool, "device": device}
    allocation: Object = {"devices": {"results": [result]}}
    if not choice.chance(30):
        field = {"key": _NAME, "operator": "In", "values": [choice.pick(nodes)]}
        allocation["nodeSelector"] = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    return allocation


def _others_claim(
    choice: Choice, index: int, nodes: list[str], devices: list[tuple[str, str, str]]
) -> Object:
    """Return a claim of some other pod, mostly with a device."""
    found = _claim(f"other{index}", _spec(choice))
    if devices and not choice.chance(15):
        found["status"] = {"allocation": _given(choice, nodes, devices, "r0")}
    return found


def _own_claims(
    choice: Choice, pod: Object, nodes: list[str], devices: list[tuple[str, str, str]]
) -> tuple[list[Object], list[Object], list[Object]]:
    """Return claims of the pod, its entries for them, and the names in its status."""
    namespace = pod["metadata"].get("namespace", "default")
    name = pod["metadata"]["name"]
    claims, entries, statuses = [], [], []
    for index in range(choice.number(1, 2)):
        claim = _claim(f"mine{index}", _spec(choice))
        if choice.chance(70):
            claim["metadata"]["ownerReferences"] = [
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "name": name,
                    "uid": f"{namespace}/{name}" if not choice.chance(3) else "another",
                    "controller": True,
                }
            ]
            entries.append({"name": f"c{index}", "resourceClaimTemplateName": "template"})
            if not choice.chance(3):
                statuses.append({"name": f"c{index}", "resourceClaimName": f"mine{index}"})
        else:
            entries.append({"name": f"c{index}", "resourceClaimName": f"mine{index}"})
        if devices and choice.chance(15):
            request = claim["spec"]["devices"]["requests"][0]
            label = request["name"]
            if "firstAvailable" in request:
                label += f"/{request['firstAvailable'][-1]['name']}"
            claim["status"] = {"allocation": _given(choice, nodes, devices, label)}
        if choice.chance(3):
            claim["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
            claim["metadata"]["finalizers"] = ["resource.kubernetes.io/delete-protection"]
        if not choice.chance(3):
            claims.append(claim)
    return claims, entries, statuses
