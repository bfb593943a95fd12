"""``profiles`` of the configuration file: the profiles of a KubeSchedulerConfiguration.

Called by ``config``. In: YAML. Out: ``Profile``s. Pods with a profile's scheduler name are filtered
and scored as kube-scheduler does with that profile. Fields without a meaning here (permit,
extenders) are refused, not ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import yaml

from quorate.core.model import PodSelector, PreferredTerm, SelectorTerm, SpreadConstraint
from quorate.core.model.profile import WEIGHTS, FitStrategy, Profile
from quorate.core.rules.table import KUBE_FILTERS, KUBE_SCORES
from quorate.shell.configuration.yaml_fields import (
    BadValueError,
    Field,
    Fields,
    Reader,
    ReadValue,
    boolean,
    choice,
    items,
    name,
    section,
    text,
    texts,
    whole_number,
)
from quorate.shell.watch.pod.neighbours import requirements
from quorate.shell.watch.pod.wire import NodeSelector, NodeTerm, Preferred

_NOBODY = PodSelector((), None)
_ELSEWHERE = (
    "NodeName",
    "SchedulingGates",
    "PrioritySort",
    "DefaultBinder",
    "DefaultPreemption",
    "GangScheduling",
)
"""Plugins of kube-scheduler that are no rules here."""
_PLUGINS = tuple(dict.fromkeys((*KUBE_FILTERS, *KUBE_SCORES, *_ELSEWHERE)))
_ALL = "*"
_INT32_MAX = 2**31 - 1


def profiles(dns_name: Callable[[str], object]) -> ReadValue:
    """Return the reader of the list; the reader returns ``(scheduler name, Profile)`` pairs."""
    fields: Fields = {
        "schedulerName": Field("scheduler", text(dns_name), required="default-scheduler"),
        "percentageOfNodesToScore": Field("percentage", whole_number(0, 100)),
        "plugins": Field("plugins", section(_PLUGIN_SETS)),
        "pluginConfig": Field("arguments", items(_argument)),
    }

    def read(reader: Reader, node: yaml.Node, path: str) -> tuple[tuple[str, Profile], ...]:
        found: Any = items(section(fields))(reader, node, path)
        built = [(one["scheduler"], _profile(one)) for one in found if "scheduler" in one]
        names = [scheduler for scheduler, _ in built]
        twice = next((one for one in names if names.count(one) > 1), None)
        if twice is not None:
            raise BadValueError(f'"{twice}" has two profiles', "Remove one of the two.")
        return tuple(built)

    return read


def _profile(read: Mapping[str, Any]) -> Profile:
    plugins = read.get("plugins", {})
    values: dict[str, Any] = {}
    for one in read.get("arguments", ()):
        values |= one
    return Profile(weights=tuple(_weights(plugins).items()), disabled=_disabled(plugins), **values)


def _weights(plugins: Mapping[str, Any]) -> dict[str, int]:
    weights = dict(WEIGHTS)
    for point in ("multi_point", "score"):
        chosen = _named(plugins.get(point, {}))
        for plugin in chosen["disabled"]:
            for rule in list(weights) if plugin["name"] == _ALL else [plugin["name"]]:
                weights.pop(rule, None)
        for plugin in chosen["enabled"]:
            if plugin["name"] in WEIGHTS:
                usual = WEIGHTS[plugin["name"]] if point == "multi_point" else 1
                weights[plugin["name"]] = plugin.get("weight") or usual
    return weights


def _disabled(plugins: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the filters (and DefaultPreemption) that are off."""
    known = (*KUBE_FILTERS, "DefaultPreemption")
    off: set[str] = set()
    for point in ("multi_point", "pre_filter", "filter", "post_filter"):
        chosen = _named(plugins.get(point, {}))
        concerned = ("DefaultPreemption",) if point == "post_filter" else known
        for plugin in chosen["disabled"]:
            off.update(concerned if plugin["name"] == _ALL else [plugin["name"]])
        off.difference_update(plugin["name"] for plugin in chosen["enabled"])
    return tuple(one for one in known if one in off)


def _named(chosen: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Leave out items without a name: they were reported before."""
    return {
        part: [one for one in chosen.get(part, ()) if "name" in one]
        for part in ("enabled", "disabled")
    }


def _plugin_name(value: str) -> str:
    if value != _ALL and value not in _PLUGINS:
        raise BadValueError("is no plugin that quorate knows", f"Known are {', '.join(_PLUGINS)}.")
    return value


_PLUGIN: Fields = {
    "name": Field("name", text(_plugin_name), required="NodeResourcesFit"),
    "weight": Field("weight", whole_number(0, 1_000)),
}
_CHOSEN: Fields = {
    "enabled": Field("enabled", items(section(_PLUGIN))),
    "disabled": Field("disabled", items(section(_PLUGIN))),
}
_PLUGIN_SETS: Fields = {
    "multiPoint": Field("multi_point", section(_CHOSEN)),
    "preFilter": Field("pre_filter", section(_CHOSEN)),
    "filter": Field("filter", section(_CHOSEN)),
    "postFilter": Field("post_filter", section(_CHOSEN)),
    "preScore": Field("pre_score", section(_CHOSEN)),
    "score": Field("score", section(_CHOSEN)),
}


# Arguments of plugins: each reader returns fields of ``Profile``.


def _argument(reader: Reader, node: yaml.Node, path: str) -> dict[str, Any]:
    """Read ``{name, args}``; the fields of ``args`` depend on the name."""
    plugin = ""
    for key, value in node.value if isinstance(node, yaml.MappingNode) else ():
        if key.value == "name" and isinstance(value, yaml.ScalarNode):
            plugin = value.value
    fields = _ARGUMENTS.get(plugin)
    if fields is None:
        raise BadValueError(
            f'"{plugin[:60]}" takes no arguments here', f"Known are {', '.join(_ARGUMENTS)}."
        )
    whole: Fields = {
        "name": Field("name", text(str), required=next(iter(_ARGUMENTS))),
        "args": Field("args", section({**_TYPE, **fields})),
    }
    found = section(whole)(reader, node, path)
    assert isinstance(found, dict), "a section is a dict"
    given = dict(found.get("args", {}))
    for ignored in ("api_version", "kind"):
        given.pop(ignored, None)
    return _FINISH.get(plugin, dict)(given)


def _fit(given: dict[str, Any]) -> dict[str, Any]:
    strategy = given.pop("strategy", None)
    if strategy is not None:
        points = [one for one in strategy.get("shape", ()) if len(one) == len(_POINT)]
        shape = tuple((one["utilization"], one["score"]) for one in points)
        given["fit"] = FitStrategy(
            type=strategy.get("type", "LeastAllocated"),
            resources=_resources(strategy.get("resources")),
            shape=shape,
        )
        if given["fit"].type == "RequestedToCapacityRatio" and not shape:
            raise BadValueError(
                "RequestedToCapacityRatio has no shape",
                "Write requestedToCapacityRatio: {shape: [...]} with a point or more.",
            )
    return given


def _balanced(given: dict[str, Any]) -> dict[str, Any]:
    return {"balanced": _resources(given.get("resources"))}


def _resources(written: list[dict[str, Any]] | None) -> tuple[tuple[str, int], ...]:
    usual: list[dict[str, Any]] = [{"name": "cpu"}, {"name": "memory"}]
    return tuple((one["name"], one.get("weight", 1)) for one in written or usual if "name" in one)


def _spread(given: dict[str, Any]) -> dict[str, Any]:
    constraints = given.get("constraints", [])
    if given.get("type", "System") == "System":
        if constraints:
            raise BadValueError(
                "defaultConstraints are set, and defaultingType is System",
                "Write defaultingType: List.",
            )
        return {"default_spread": None}
    return {
        "default_spread": tuple(
            SpreadConstraint(
                max_skew=one["max_skew"],
                topology_key=one["topology_key"],
                hard=one["when"] == "DoNotSchedule",
                selector=_NOBODY,
            )
            for one in constraints
            if len(one) == len(_CONSTRAINT)
        )
    }


def _added_affinity(_reader: Reader, node: yaml.Node, path: str) -> dict[str, Any]:
    """Read a node affinity, as pods have it."""
    try:
        plain = yaml.safe_load(yaml.serialize(node, Dumper=yaml.SafeDumper))
        found = msgspec.convert(plain, _NodeAffinity)
    except (msgspec.ValidationError, yaml.YAMLError) as error:
        what = f"{path.rpartition('.')[2]} is no node affinity: {error}"
        raise BadValueError(what, "Write it as in a pod's spec.affinity.nodeAffinity.") from error
    terms = found.required.node_selector_terms if found.required else None
    return {
        "required": None if terms is None else tuple(_term(one) for one in terms),
        "preferred": tuple(
            PreferredTerm(one.weight, _term(one.preference)) for one in found.preferred or ()
        ),
    }


class _NodeAffinity(msgspec.Struct, forbid_unknown_fields=True):
    required: NodeSelector | None = msgspec.field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: list[Preferred] | None = msgspec.field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


def _term(term: NodeTerm) -> SelectorTerm:
    return SelectorTerm(requirements(term.match_expressions), requirements(term.match_fields))


def _affinity(given: dict[str, Any]) -> dict[str, Any]:
    added = given.get("added", {})
    return {
        "added_required": added.get("required"),
        "added_preferred": added.get("preferred", ()),
    }


_TYPE: Fields = {"apiVersion": Field("api_version", text(str)), "kind": Field("kind", text(str))}
_RESOURCE: Fields = {
    "name": Field("name", text(name), required="cpu"),
    "weight": Field("weight", whole_number(1, 100)),
}
_POINT: Fields = {
    "utilization": Field("utilization", whole_number(0, 100), required="0"),
    "score": Field("score", whole_number(0, 10), required="0"),
}
_STRATEGIES = {one: one for one in ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")}
_RATIO: Fields = {"shape": Field("shape", items(section(_POINT)))}


def _strategy(reader: Reader, node: yaml.Node, path: str) -> dict[str, Any]:
    fields: Fields = {
        "type": Field("type", choice(_STRATEGIES)),
        "resources": Field("resources", items(section(_RESOURCE))),
        "requestedToCapacityRatio": Field("ratio", section(_RATIO)),
    }
    found = section(fields)(reader, node, path)
    assert isinstance(found, dict), "a section is a dict"
    return {**found, **found.pop("ratio", {})}


_CONSTRAINT: Fields = {
    "maxSkew": Field("max_skew", whole_number(1, _INT32_MAX), required="1"),
    "topologyKey": Field("topology_key", text(name), required="topology.kubernetes.io/zone"),
    "whenUnsatisfiable": Field(
        "when",
        choice({one: one for one in ("DoNotSchedule", "ScheduleAnyway")}),
        required="ScheduleAnyway",
    ),
}
_ARGUMENTS: Mapping[str, Fields] = {
    "NodeResourcesFit": {
        "ignoredResources": Field("ignored_resources", texts(name)),
        "ignoredResourceGroups": Field("ignored_resource_groups", texts(name)),
        "scoringStrategy": Field("strategy", _strategy),
    },
    "NodeResourcesBalancedAllocation": {
        "resources": Field("resources", items(section(_RESOURCE))),
    },
    "NodeAffinity": {"addedAffinity": Field("added", _added_affinity)},
    "InterPodAffinity": {
        "hardPodAffinityWeight": Field("hard_pod_affinity_weight", whole_number(0, 100)),
        "ignorePreferredTermsOfExistingPods": Field(
            "ignore_preferred_terms_of_existing_pods", boolean
        ),
    },
    "PodTopologySpread": {
        "defaultingType": Field("type", choice({one: one for one in ("System", "List")})),
        "defaultConstraints": Field("constraints", items(section(_CONSTRAINT))),
    },
    "DefaultPreemption": {
        "minCandidateNodesPercentage": Field(
            "preemption_nodes_percentage_min", whole_number(0, 100)
        ),
        "minCandidateNodesAbsolute": Field("preemption_nodes_min", whole_number(0, _INT32_MAX)),
    },
}
_FINISH: Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "NodeResourcesFit": _fit,
    "NodeResourcesBalancedAllocation": _balanced,
    "NodeAffinity": _affinity,
    "PodTopologySpread": _spread,
}
