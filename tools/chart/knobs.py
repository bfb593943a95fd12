"""What the chart's values change in the manifests: one row for each place.

In: nothing. Out: tables, read by ``making``. A place is a path of keys into the one object of its
kind and name; an item of a list is its number.
"""

from typing import Literal, NamedTuple

import msgspec

from quorate.cks.components import (
    MUTATING_SINCE,
    MUTATIONS,
    NODES,
    POLICIES,
    TABLE,
    UNLESS_RIGHT,
)
from quorate.cks.rules import FIELDS, Rules
from quorate.cli.commands.manifests import OPTIONAL_RIGHTS, Withheld

Path = tuple[str | int, ...]
SCHEDULER = ""
"""The scheduler's own manifests, which are no component."""


class Knob(NamedTuple):
    """One place of one object that a value changes."""

    kind: str
    path: Path
    how: Literal["block", "scalar", "after"]
    """``block``: the value replaces what is below the key. ``scalar``: the text replaces what is
    beside the key. ``after``: the text comes behind all that is below the key."""
    text: str
    """Helm's text: an expression in ``block``, else lines, which are indented as the key is."""
    value: str = ""
    """The value whose default has to be what the manifests say there; a test compares."""
    components: tuple[str, ...] = (SCHEDULER,)
    """Of which components the object is."""


_POD: Path = ("spec", "template", "spec")
_CONTAINER: Path = (*_POD, "containers", 0)


def _if_given(name: str) -> str:
    """Return the lines of a field that is there when its value is not empty."""
    return f"""\
{{{{- with .Values.{name} }}}}
{name}:
  {{{{- toYaml . | nindent INDENT }}}}
{{{{- end }}}}"""


def _block(kind: str, path: Path, value: str) -> Knob:
    return Knob(kind, path, "block", f"toYaml .Values.{value}", value)


KNOBS = (
    Knob(
        "ServiceAccount",
        ("metadata", "labels"),
        "after",
        """\
{{- with .Values.serviceAccount.annotations }}
annotations:
  {{- toYaml . | nindent INDENT }}
{{- end }}""",
    ),
    Knob(
        "ConfigMap",
        ("data", "config.yaml"),
        "scalar",
        """\
|
{{- include "quorate.config" . | nindent INDENT }}""",
    ),
    Knob(
        "ResourceQuota",
        ("spec", "scopeSelector", "matchExpressions", 0, "values"),
        "scalar",
        "[{{ .Values.priorityClassName }}]",
        components=(SCHEDULER, NODES),
    ),
    Knob(
        "Deployment",
        ("spec", "template", "metadata", "labels"),
        "after",
        """\
  {{- with .Values.podLabels }}
  {{- toYaml . | nindent INDENT }}
  {{- end }}""",
    ),
    Knob(
        "Deployment",
        ("spec", "template", "metadata", "annotations"),
        "block",
        'include "quorate.podAnnotations" .',
        "podAnnotations",
    ),
    Knob(
        "Deployment",
        (*_POD, "priorityClassName"),
        "scalar",
        "{{ .Values.priorityClassName }}",
        "priorityClassName",
        (SCHEDULER, NODES),
    ),
    Knob(
        "Deployment",
        (*_POD, "priorityClassName"),
        "after",
        "\n".join(_if_given(name) for name in ("imagePullSecrets", "nodeSelector", "affinity")),
        components=(NODES,),
    ),
    Knob(
        "Deployment",
        (*_POD, "tolerations"),
        "after",
        """\
  {{- with .Values.tolerations }}
  {{- toYaml . | nindent INDENT }}
  {{- end }}""",
        components=(NODES,),
    ),
    Knob(
        "Deployment",
        (*_POD, "priorityClassName"),
        "after",
        "\n".join(
            _if_given(name)
            for name in ("imagePullSecrets", "nodeSelector", "tolerations", "affinity")
        ),
    ),
    _block("Deployment", (*_POD, "topologySpreadConstraints"), "topologySpreadConstraints"),
    _block("Deployment", (*_POD, "securityContext"), "podSecurityContext"),
    Knob(
        "Deployment",
        (*_CONTAINER, "image"),
        "after",
        """\
{{- with .Values.image.pullPolicy }}
imagePullPolicy: {{ . }}
{{- end }}""",
        components=(SCHEDULER, NODES),
    ),
    _block("Deployment", (*_CONTAINER, "resources"), "resources"),
    _block("Deployment", (*_CONTAINER, "securityContext"), "securityContext"),
    Knob(
        "CustomResourceDefinition",
        ("metadata", "annotations"),
        "after",
        """\
  {{- if .Values.crds.keep }}
  helm.sh/resource-policy: keep
  {{- end }}""",
    ),
)

ONLY_IF = {
    "Namespace": ".Values.namespace.create",
    "ResourceQuota": ".Values.resourceQuota.enabled",
}
"""Kinds of objects that are there only if a value says so."""

_ENFORCES = 'ne (((.Values.cks).rules).mode) "observe"'
_MUTATES = (
    f'semverCompare ">={MUTATING_SINCE[0]}.{MUTATING_SINCE[1]}-0" .Capabilities.KubeVersion.Version'
)
PARTS_ONLY_IF = {
    "crds": ".Values.crds.install",
    "networkpolicy": ".Values.networkPolicy.enabled",
    # Values that an older chart has left (helm upgrade --reuse-values) have none of these.
    POLICIES: f"and ((.Values.cks).policies).enabled ({_ENFORCES})",
    NODES: f"and ((.Values.cks).nodes).enabled ({_ENFORCES})",
    MUTATIONS: f"and ((.Values.cks).policies).enabled ({_ENFORCES}) ({_MUTATES})",
}
"""Parts of the manifests, whole, that are there only if a value says so."""


def _if(value: str, text: str) -> str:
    return f"{{{{- if {value} }}}}{text}\n{{{{- end }}}}"


_AS_LIST = {
    name: " | toJson"
    for name, value in msgspec.structs.asdict(Rules(organizations=())).items()
    if isinstance(value, tuple)
}

PLACEHOLDERS = {
    "namespace": "{{ .Release.Namespace }}",
    "image": '{{ include "quorate.image" . }}',
    "replicas": "{{ .Values.replicas }}",
    "critical_pods": "{{ add (mul 2 (int .Values.replicas)) 4 }}",
    "preemption": _if(".Values.preemption", OPTIONAL_RIGHTS["preemption"]),
    **{
        name.replace("-", "_"): _if(f'not (has "{name}" .Values.without)', OPTIONAL_RIGHTS[name])
        for name in Withheld
    },
    "unless_right": _if(
        _MUTATES, UNLESS_RIGHT.replace("${reserved_label}", "{{ .Values.cks.rules.reservedLabel }}")
    ),
    **{
        field.name: f"{{{{ .Values.cks.rules.{name}{_AS_LIST.get(field.name, '')} }}}}"
        for name, field in FIELDS.items()
        if field.name in Rules.__struct_fields__
    },
    **TABLE,
    "checksum": "{{ .Values.cks.rules | toJson | sha256sum | trunc 16 }}",
}
"""What stands for the placeholders of the manifests' templates."""
