"""Rules about pods that must share a domain with other pods: whether the files have those."""

from __future__ import annotations

from collections.abc import Iterator

from quorate.core.model import Pod
from quorate.lint.added_labels import are_controllers
from quorate.lint.empty_cluster import is_attracted, member, namespaces_of
from quorate.lint.finding import Finding
from quorate.lint.manifests import Manifests

_PODS = ("affinity", "podAffinity")


def needs_others(manifests: Manifests) -> Iterator[Finding]:
    """Required affinity to pods that no file makes, not even the pod itself."""
    namespaces = namespaces_of(manifests)
    pods = [member(source) for source in manifests.sources]
    for source, pod in zip(manifests.sources, pods, strict=True):
        if is_attracted(pod, pods, namespaces) or _is_for_controllers(pod):
            continue
        yield source.object.warning(
            "affinity-needs-others",
            (*source.path, "spec", *_PODS),
            f"the pods of {source.title} have to be near pods that match all terms of "
            "spec.affinity.podAffinity, and no pod of these files does: they wait for such pods",
            "check the labels and namespaces that it selects, or start those pods first",
        )


def _is_for_controllers(pod: Pod) -> bool:
    """Whether a term selects by a label that controllers write, so that files cannot tell."""
    selectors = [term.selector.labels for term in pod.spec.affinity]
    keys = [one.key for labels in selectors if labels is not None for one in labels.requirements]
    return any(are_controllers(key) for key in keys)
