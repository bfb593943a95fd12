"""Make cases for the oracle of what the recorder wrote.

In: one file of events per plugin, see ``recorder``. Out: fixtures: a case, and what the plugin said
in the table test. Objects of table tests are bare: names, namespaces and nodeName are filled in.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any

Object = dict[str, Any]

_SUCCESS = {"code": "Success"}
_UNNORMALISED = ("ImageLocality", "NodeResourcesBalancedAllocation", "NodeResourcesFit")
_GATED_ARGUMENTS = ("shape",)  # of VolumeBinding; without StorageCapacityScoring not allowed
# Said where the time was up: not a matter of the cluster, and the oracle would take as long again.
_TIMED = ("stop allocating devices", "timed out trying to allocate")
_OUTSIDE_NAMESPACES = (
    "PersistentVolume", "StorageClass", "CSINode", "CSIDriver",
    "VolumeAttachment", "ResourceSlice", "DeviceClass", "PriorityClass",
)  # fmt: skip


@dataclass(frozen=True)
class Fixture:
    """One case of a table test.

    ``said`` has the plugin's words in the test: ``preFilter`` a verdict, ``filter`` verdicts by
    node, ``scores`` by node (normalised), ``victims`` names by node. ``features`` names the
    features that the test had not at their defaults.
    """

    plugin: str
    source: str
    case: Object
    said: Object
    features: tuple[str, ...]


@dataclass
class _World:
    """The cluster of one test case and what was said about it, as its events tell."""

    nodes: dict[str, Object] = field(default_factory=dict)
    pods: dict[str, list[Object]] = field(default_factory=dict)
    said: Object = field(default_factory=dict)
    raw: dict[str, int] = field(default_factory=dict)  # scores before they are normalised
    scored: list[str] = field(default_factory=list)

    def name_of(self, described: Object) -> str:
        """Give the name of a node, entering it if it is new."""
        node, pods = described.get("node", {}), described["pods"]
        name = node.get("metadata", {}).get("name") or next(
            (known for known, old in self.nodes.items() if old == node), f"node-{len(self.nodes)}"
        )
        # Tests hand over nodes without their pods where a plugin has a snapshot to read them from.
        if name not in self.nodes or pods:
            self.nodes[name], self.pods[name] = node, pods
        return str(name)

    def note(self, event: Object) -> None:
        """Enter one call of the plugin."""
        on = event.get("on")
        # Some tests make a node of nothing but its pods; others want the error of no node at all.
        usable = on and (_has_node(on) or event["verdict"]["code"] != "Error")
        name = self.name_of(on) if on and usable else None
        match event["kind"]:
            case "preFilter":
                self.said["preFilter"] = event["verdict"]
            case "filter" if name is not None:
                self.said.setdefault("filter", {})[name] = event["verdict"]
            case "preScore":
                self.scored = [self.name_of(one) for one in filter(_has_node, event["nodes"])]
            case "score" if name is not None and event["verdict"] == _SUCCESS:
                self.raw[name] = event["score"]
            case "normalized" if event["verdict"] == _SUCCESS:
                self.said["scores"] = event["scores"]
            case "victims":
                victims = [_key_of(pod) for pod in event.get("victims", [])]
                self.said.setdefault("victims", {})[event["node"]] = victims


def read(path: Path) -> Iterator[Fixture]:
    """Give each different case of one plugin's recorded events, in their order."""
    with path.open(encoding="utf-8") as lines:
        events = [_clean(json.loads(line)) for line in lines]
    events.sort(key=lambda event: int(event["group"]))  # stable: groups may interleave
    seen: set[str] = set()
    for _, group in groupby(events, key=lambda event: event["group"]):
        fixture = _fixture(*group)
        key = json.dumps(astuple(replace(fixture, source="")), sort_keys=True)
        if fixture.case["nodes"] and key not in seen and not any(one in key for one in _TIMED):
            seen.add(key)
            yield fixture


def differences(fixture: Fixture, answer: Mapping[str, Any]) -> list[str]:
    """Say where the oracle's answer is not what the plugin said in the test."""
    said, plugin, found = fixture.said, fixture.plugin, []
    if "preFilter" in said:
        verdict = _bare(answer["preFilter"].get(plugin, _SUCCESS))
        if verdict != said["preFilter"]:
            return [f"PreFilter: {verdict}, in the test {said['preFilter']}"]
    for node, expected in said.get("filter", {}).items():
        verdict = _bare(answer["filter"].get(node, {}).get(plugin, _SUCCESS))
        if verdict != expected and verdict["code"] != "PreFilterResult":
            found.append(f"Filter on {node}: {verdict}, in the test {expected}")
    for node, expected in said.get("scores", {}).items():
        score = answer.get("scores", {}).get(node, {}).get(plugin, 0)
        if score != expected:
            found.append(f"Score of {node}: {score}, in the test {expected}")
    candidates = (answer.get("preemption") or {}).get("candidates") or {}
    for node, expected in said.get("victims", {}).items():
        victims = candidates.get(node, {}).get("victims", [])
        if victims != expected:
            found.append(f"Victims on {node}: {victims}, in the test {expected}")
    return found


def _fixture(cluster: Object, *events: Object) -> Fixture:
    world, plugin = _World(), cluster["plugin"]
    for described in sorted(filter(_has_node, cluster["nodes"]), key=_name_in):
        world.name_of(described)
    for event in events:
        world.note(event)
    said = world.said
    if world.raw and plugin in _UNNORMALISED:
        said["scores"] = world.raw
    case = _case(cluster, world)
    if "scores" in said:
        case["scoreNodes"] = sorted(world.scored or said["scores"])
    # A dry run is called from workers, whose stack has no test in it.
    source = cluster["source"] or plugin.lower()
    return Fixture(plugin, source, case, said, tuple(cluster.get("features") or ()))


def _has_node(described: Object | None) -> bool:
    return bool(described and described.get("node"))


def _name_in(described: Object) -> str:
    return str(described["node"].get("metadata", {}).get("name", ""))


def _kind_and_name(made: Object) -> tuple[str, str, str]:
    metadata = made["metadata"]
    return made["kind"], metadata.get("namespace", ""), metadata.get("name", "")


def _case(cluster: Object, world: _World) -> Object:
    taken: set[str] = set()
    pending = _named(cluster["pod"], "pending", taken)
    nodes, pods = [], []
    for name, node in world.nodes.items():
        nodes.append({**node, "metadata": {**node.get("metadata", {}), "name": name}})
        for number, pod in enumerate(world.pods[name]):
            placed = _named(pod, f"{name}-pod-{number}", taken)
            placed["spec"] = {**placed.get("spec", {}), "nodeName": name}
            pods.append(placed)
    case: Object = {"nodes": nodes, "pods": pods, "pod": pending}
    objects = [_spaced(one) for one in cluster["objects"] if one["kind"] not in ("Node", "Pod")]
    if objects:
        case["objects"] = sorted(objects, key=_kind_and_name)  # maps of Go have no order
    if "args" in cluster:
        plugin = cluster["plugin"]
        args = {key: arg for key, arg in cluster["args"].items() if key not in _GATED_ARGUMENTS}
        case["profile"] = {"pluginConfig": [{"name": plugin, "args": args}]}
    return case


def _named(pod: Object, name: str, taken: set[str]) -> Object:
    """Give a pod a namespace and a name that no other has."""
    metadata = {"namespace": "default", "name": name, **pod.get("metadata", {})}
    wanted, number = metadata["name"], 1
    while f"{metadata['namespace']}/{metadata['name']}" in taken:
        number += 1
        metadata["name"] = f"{wanted}-{number}"
    taken.add(f"{metadata['namespace']}/{metadata['name']}")
    return {**pod, "metadata": metadata}


def _key_of(pod: Object) -> str:
    metadata = {"namespace": "default", **pod["metadata"]}
    return f"{metadata['namespace']}/{metadata['name']}"


def _spaced(made: Object) -> Object:
    if made["kind"] == "Namespace":
        return {**made, "metadata": {"name": "default", **made.get("metadata", {})}}
    if made["kind"] in _OUTSIDE_NAMESPACES:
        return made
    return {**made, "metadata": {"namespace": "default", **made.get("metadata", {})}}


def _bare(verdict: Mapping[str, Any]) -> Object:
    return {name: verdict[name] for name in ("code", "reasons") if name in verdict}


def _clean(made: Object) -> Object:
    """Drop nulls, and name the namespace that tests leave empty."""
    cleaned: Object = {key: _clean_any(one) for key, one in made.items() if one is not None}
    if isinstance(cleaned.get("namespaces"), list):  # of an affinity term
        cleaned["namespaces"] = [name or "default" for name in cleaned["namespaces"]]
    return cleaned


def _clean_any(value: object) -> object:
    if isinstance(value, list):
        return [_clean_any(one) for one in value]
    return _clean(value) if isinstance(value, dict) else value
