"""The rules' names and organizations: a file of kind ``WorkloadRules`` in, a frozen ``Rules`` out.

Called by ``quorate manifests --rules`` and ``quorate cks-nodes``. The defaults are CoreWeave's
names, as it documents them. A bad file is a ``ConfigError`` with all mistakes, their lines and what
to write instead. What is read is put into expressions of policies, so each value has a pattern that
nothing else passes.
"""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from quorate.cks.states import STEPS
from quorate.core.model.life_cycle import CONTROL_PLANE, LifeCycleLabels
from quorate.shell.configuration.yaml_fields import (
    DNS_NAME,
    LABEL_NAME,
    BadValueError,
    Field,
    Reader,
    choice,
    constant,
    label_key,
    matching,
    read_text,
    text,
    texts,
)

API_VERSION = "quorate.dev/v1alpha1"
KIND = "WorkloadRules"
OBSERVE = "observe"
"""The mode of clusters whose rules another keeps: nothing of ours is installed there."""
_LABELS = LifeCycleLabels()


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """What differs between clusters that have these rules; the defaults are CoreWeave's."""

    organizations: tuple[str, ...]
    """Ids of the organizations of this cluster, as the labels say them."""
    group_prefix: str = "org:"
    """A user in the group of this prefix and an id is a user of that organization."""
    domains: tuple[str, ...] = ("coreweave.cloud", "coreweave.com")
    """Labels in these domains and below are the platform's."""
    organization_label: str = "ns.coreweave.cloud/org"
    reserved_label: str = _LABELS.reserved
    """Also the key of the taint that keeps others off a node."""
    desired_label: str = _LABELS.desired
    state_label: str = _LABELS.state
    class_label: str = "node.coreweave.cloud/class"
    """Of nodes: ``gpu`` or ``cpu``. Where it is missing, a node with GPUs is a GPU node."""
    cpu_taint: str = "is_cpu_compute"
    gpu_taint: str = "is_gpu"
    gpu_resources: tuple[str, ...] = ("nvidia.com/gpu",)


def load(path: Path) -> Rules:
    """Read the file. Raises ConfigError, also when it cannot be read."""
    return parse(read_text(path, "--rules"), str(path))


def parse(document: str, source: str) -> Rules:
    """Read the text of a file of rules; ``source`` names it in errors. Raises ConfigError.

    Who reads them is to enforce them, so a file that only observes is an error too.
    """
    reader = Reader(source)
    values = reader.read(reader.compose(document, hint=_HEAD_HINT), FIELDS)
    rules = Rules(**{"organizations": ()} | {key: values[key] for key in values.keys() & _NAMES})
    for keys in _DIFFERENT:
        names = [getattr(rules, FIELDS[key].name) for key in keys]
        reader.expect(
            len(set(names)) == len(names),
            keys,
            f"two of {', '.join(keys)} are the same",
            "Give each a name of its own.",
        )
    reader.expect(
        values.get("mode") != OBSERVE,
        ("mode",),
        "observe: another keeps these rules in this cluster, so nothing is installed for them",
        "quorate explains by the labels of nodes as it is. Where it is to keep the rules, write"
        " enforce.",
    )
    reader.raise_problems()
    return rules


def _organization(value: str) -> str:
    if value == CONTROL_PLANE:
        raise BadValueError("is what the control plane is called", "Leave it out: it is there.")
    if value in STEPS:
        hint = "Give the organization another id."
        raise BadValueError("is a state in the life-cycle of nodes", hint)
    return _ID(value)


# No value of any of these can end a text of CEL, or of YAML.
_ID = matching(
    re.compile(LABEL_NAME),
    63,
    "is no value of a label",
    "Use letters, digits, '-', '_' and '.', at most 63.",
)
_DOMAIN = matching(DNS_NAME, 253, "is no domain", "Write one such as example.com.")
_PREFIX = matching(
    re.compile(r"[-A-Za-z0-9_.:/@]*"),
    253,
    "is no beginning of a group's name",
    "Use letters, digits and any of - _ . : / @.",
)
_HEAD_HINT = f"Start it with:\napiVersion: {API_VERSION}\nkind: {KIND}"

FIELDS = {
    "apiVersion": Field("api_version", constant(API_VERSION), required=API_VERSION),
    "kind": Field("kind", constant(KIND), required=KIND),
    "mode": Field("mode", choice({one: one for one in ("enforce", OBSERVE)})),
    "organizations": Field("organizations", texts(_organization), required="[my-organization]"),
    "groupPrefix": Field("group_prefix", text(_PREFIX)),
    "domains": Field("domains", texts(_DOMAIN)),
    "organizationLabel": Field("organization_label", text(label_key)),
    "reservedLabel": Field("reserved_label", text(label_key)),
    "desiredLabel": Field("desired_label", text(label_key)),
    "stateLabel": Field("state_label", text(label_key)),
    "classLabel": Field("class_label", text(label_key)),
    "cpuTaint": Field("cpu_taint", text(label_key)),
    "gpuTaint": Field("gpu_taint", text(label_key)),
    "gpuResources": Field("gpu_resources", texts(label_key)),
}
_NAMES = set(Rules.__struct_fields__)
_DIFFERENT = (
    ("reservedLabel", "desiredLabel", "stateLabel", "classLabel"),
    ("reservedLabel", "cpuTaint", "gpuTaint"),
)
