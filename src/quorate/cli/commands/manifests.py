"""``quorate manifests``: all that a cluster needs to run quorate, as YAML for ``kubectl apply``.

In: a namespace, an image, a number of replicas, and which parts. Out: the text. The templates are
package data in ``quorate/deploy``; their comments stay, for whoever reads what they apply.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterator, Sequence
from enum import StrEnum
from importlib import resources
from pathlib import Path
from string import Template

from quorate import __version__
from quorate.cks import components
from quorate.cli.show import output as out

PARTS = ("crds", "rbac", "userroles", "flowschema", "deployment")
"""In the order in which they have to be applied: the namespace comes with ``rbac``."""
NETWORK_PART = "networkpolicy"
"""Printed when it is asked for: what scrapes metrics has to be let in by a label."""

DEFAULT_NAMESPACE = "quorate-system"
DEFAULT_IMAGE = f"quorate:{__version__}"
DEFAULT_REPLICAS = 2
REPLICAS_MAX = 10


class Withheld(StrEnum):
    """What ``--without`` takes: rights that are granted by default."""

    DEVICES = "devices"
    VOLCANO_QUEUES = "volcano-queues"


OPTIONAL_RIGHTS = {
    "preemption": """
  # Preemption deletes pods of lower priority, as kube-scheduler does it, for pods of the profiles
  # in the configuration (quorate manifests --preemption).
  - apiGroups: [""]
    resources: [pods]
    verbs: [delete]""",
    Withheld.DEVICES: """
  # A claim gets its devices before its pod is bound, and gives them back when the gang cannot start
  # after all (not with quorate manifests --without devices).
  - apiGroups: [resource.k8s.io]
    resources: [resourceclaims]
    verbs: [get, patch]
  - apiGroups: [resource.k8s.io]
    resources: [resourceclaims/status, resourceclaims/binding]
    verbs: [patch]""",
    Withheld.VOLCANO_QUEUES: """
  # Volcano's own scheduler creates the queues "root" and "default", and says what gangs take of
  # each; nobody else does (not with quorate manifests --without volcano-queues).
  - apiGroups: [scheduling.volcano.sh]
    resources: [queues]
    verbs: [create]
  - apiGroups: [scheduling.volcano.sh]
    resources: [queues/status]
    verbs: [patch]""",
}
"""The rules that options add to the ClusterRole, or leave out."""

_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
# [registry[:port]/]path[:tag][@digest]: enough to keep anything else out of the YAML.
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]*")
_KUBERNETES = re.compile(r"v?([0-9]{1,3})\.([0-9]{1,3})([.+-].{0,60})?")


class ManifestsError(ValueError):
    """An option has a value that no cluster would take; the text says what to write instead."""


def render(
    namespace: str = DEFAULT_NAMESPACE,
    image: str = DEFAULT_IMAGE,
    replicas: int = DEFAULT_REPLICAS,
    parts: Sequence[str] = (),
    *,
    rights: Collection[str] = tuple(Withheld),
    network_policy: bool = False,
) -> str:
    """Return the manifests of these parts, all when empty, in the order to apply them in.

    ``rights`` are those of ``OPTIONAL_RIGHTS`` to grant. With ``network_policy``, only who is
    named there reaches its ports.

    Raises ManifestsError for a value that would not make valid manifests.
    """
    known = (*PARTS, NETWORK_PART) if network_policy else PARTS
    _check(namespace, image, replicas, parts, known)
    values = {
        "namespace": namespace,
        "image": image,
        "replicas": str(replicas),
        "critical_pods": _critical_pods(replicas),
        **{
            name.replace("-", "_"): rule if name in rights else ""
            for name, rule in OPTIONAL_RIGHTS.items()
        },
    }
    texts = [
        Template(template(part)).substitute(values) for part in known if part in (parts or known)
    ]
    return "---\n".join(texts)


def component(
    name: str,
    rules_file: Path | None,
    kube_version: str | None,
    namespace: str = DEFAULT_NAMESPACE,
    image: str = DEFAULT_IMAGE,
    replicas: int = DEFAULT_REPLICAS,
) -> str:
    """Return the manifests of a component for an API server of this version, else of the newest.

    Raises ManifestsError for what is no component, file of rules or version, and as ``render``.
    """
    if name not in components.COMPONENTS:
        raise ManifestsError(
            f"--component {name!r} is not known. The components are"
            f" {', '.join(components.COMPONENTS)}."
        )
    _check(namespace, image, replicas, (), ())
    if rules_file is None:
        raise ManifestsError(
            f"--component {name} needs --rules: a file of kind WorkloadRules that names the"
            " organizations of the cluster; docs/operators/coreweave.md has one."
        )
    from quorate.cks.rules import load  # noqa: PLC0415 - needs yaml, which other parts do not
    from quorate.shell.configuration.yaml_fields import ConfigError  # noqa: PLC0415

    version = _version(kube_version) if kube_version else components.MUTATING_SINCE
    try:
        values = components.values(load(rules_file), version)
    except ConfigError as error:
        raise ManifestsError(str(error)) from error
    values |= {
        "namespace": namespace,
        "image": image,
        "replicas": str(replicas),
        "critical_pods": _critical_pods(replicas),
    }
    parts = components.parts(name, version)
    return "---\n".join(Template(template(part)).substitute(values) for part in parts)


def _critical_pods(replicas: int) -> str:
    """Return a quota: a rolling update, or pods that fail or end, need room beside the replicas."""
    return str(2 * replicas + 4)


def _version(written: str) -> tuple[int, int]:
    """Return the major and minor version. Raises ManifestsError for what is none, or too old."""
    found = _KUBERNETES.fullmatch(written)
    if not found:
        raise ManifestsError(
            f"--kube-version {written!r} is no version of Kubernetes. Write it as 1.36."
        )
    version = int(found[1]), int(found[2])
    if version < components.VALIDATING_SINCE:
        raise ManifestsError(
            f"--kube-version {written}: there are validating policies from Kubernetes 1.30 on."
            " Older API servers cannot carry out these rules."
        )
    return version


def manifests(
    *,
    namespace: str = DEFAULT_NAMESPACE,
    image: str = DEFAULT_IMAGE,
    replicas: int = DEFAULT_REPLICAS,
    only: Sequence[str] = (),
    preemption: bool = False,
    without: Collection[str] = (),
    network_policy: bool = False,
    component_name: str | None = None,
    rules: Path | None = None,
    kube_version: str | None = None,
    output: str = "yaml",
) -> int:
    """Print the manifests and return the exit code: the command ``quorate manifests``.

    ``only`` is the repeatable option ``--only``: names of parts. ``preemption`` grants the right to
    delete pods; ``without`` are rights to leave out. With ``component_name`` that component of
    ``rules`` is printed instead. ``output`` is ``yaml``, with the comments of the templates, or
    ``json``, one List.
    """
    try:
        if component_name is not None and only:
            raise ManifestsError(
                "--only names parts of the scheduler: leave it or --component out."
            )
        if component_name is not None:
            text = component(component_name, rules, kube_version, namespace, image, replicas)
        elif rules is not None or kube_version is not None:
            raise ManifestsError("--rules and --kube-version are of a --component: name one.")
        else:
            text = render(
                namespace,
                image,
                replicas,
                only,
                rights={*Withheld} - {*without} | ({"preemption"} if preemption else set()),
                network_policy=network_policy or NETWORK_PART in only,
            )
    except ManifestsError as error:
        return out.error(str(error))
    for note in _notes(text, kube_version):
        out.say(f"Note: {note}", err=True)
    sys.stdout.write(text if output == "yaml" else _as_json(text))
    return 0


def _notes(text: str, kube_version: str | None) -> Iterator[str]:
    """Tell what the manifests cannot do by themselves."""
    if f"image: {DEFAULT_IMAGE}\n" in text:
        yield (
            f"no image is published yet, so {DEFAULT_IMAGE} cannot be pulled. Build one and name"
            f" it: --image REGISTRY/{DEFAULT_IMAGE} (docs/operators/install.md)."
        )
    if kube_version is not None and _version(kube_version) < components.MUTATING_SINCE:
        yield (
            f"Kubernetes {kube_version} has no mutating policies, which need 1.36, so nothing is"
            " added to pods and namespaces. Whoever makes them writes it, the control plane's own"
            " pods among them: docs/operators/coreweave.md has it at a glance."
        )


def _as_json(text: str) -> str:
    import json  # noqa: PLC0415 - rarely wanted, as is the next

    import yaml  # noqa: PLC0415

    items = [item for item in yaml.safe_load_all(text) if item is not None]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, indent=2) + "\n"


def template(part: str) -> str:
    """Return the template of a part, a ``string.Template``: ``tools.chart`` makes Helm's of it."""
    folder = resources.files("quorate") / "deploy"
    return (folder / f"{part}.yaml").read_text(encoding="utf-8")


def _check(
    namespace: str, image: str, replicas: int, parts: Sequence[str], known: Sequence[str]
) -> None:
    if not _DNS_LABEL.fullmatch(namespace):
        raise ManifestsError(
            f"--namespace {namespace!r} is no name for a namespace. Use at most 63 lower-case"
            f" letters, digits and '-', such as {DEFAULT_NAMESPACE}."
        )
    if not _IMAGE.fullmatch(image):
        raise ManifestsError(
            f"--image {image!r} is no image reference. Write it as name:tag, such as"
            f" {DEFAULT_IMAGE}."
        )
    if not 1 <= replicas <= REPLICAS_MAX:
        raise ManifestsError(
            f"--replicas {replicas} is out of range. Use 1 to {REPLICAS_MAX}: one leads, the"
            f" others wait; {DEFAULT_REPLICAS} is enough."
        )
    unknown = [part for part in parts if part not in known]
    if unknown:
        lacks = "" if NETWORK_PART in known else f"; {NETWORK_PART} with --network-policy"
        raise ManifestsError(
            f"--only {unknown[0]!r} is no part of the manifests. The parts are {', '.join(known)}"
            f"{lacks}."
        )
