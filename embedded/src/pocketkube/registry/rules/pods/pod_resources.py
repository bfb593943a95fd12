"""What containers ask for: sums, the class of service, and checks of requests and limits.

Source: kubernetes ``pkg/apis/core/v1/helper/qos``, ``pkg/apis/core/validation`` and k8s.io/
component-helpers ``resource`` of 1.36.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from pocketkube.causes import NEGATIVE, NOT_INTEGER, invalid
from pocketkube.errors import Cause
from pocketkube.names import invalid_text, label_key
from pocketkube.schema.quantities import NANO, nano_units

_STANDARD = frozenset({"cpu", "memory", "ephemeral-storage"})
_QOS = ("cpu", "memory")


def is_huge_page(name: str) -> bool:
    """Tell whether a resource is pages of a size, such as hugepages-2Mi."""
    return name.startswith("hugepages-")


def is_native(name: str) -> bool:
    """Tell whether a resource is Kubernetes' own: it has no domain, or kubernetes.io."""
    return "/" not in name or "kubernetes.io/" in name


def is_extended(name: str) -> bool:
    """Tell whether a resource is a device or the like, such as nvidia.com/gpu."""
    if is_native(name) or name.startswith("requests."):
        return False
    return not label_key(f"requests.{name}")


def qos_class(spec: Mapping[str, Any]) -> str:
    """Return BestEffort, Burstable or Guaranteed."""
    sources: Iterable[Mapping[str, Any]]
    if spec.get("resources"):
        sources = [spec["resources"]]
    else:
        containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
        sources = [container.get("resources") or {} for container in containers]
        if not any(sources):
            return "BestEffort"
    requests: dict[str, int] = {}
    limits: dict[str, int] = {}
    guaranteed = True
    for source in sources:
        _add_for_qos(requests, source.get("requests"))
        guaranteed &= _add_for_qos(limits, source.get("limits")) == len(_QOS)
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if guaranteed and requests == limits else "Burstable"


def _add_for_qos(sums: dict[str, int], amounts: Mapping[str, Any] | None) -> int:
    found = 0
    for name in _QOS:
        amount = _amount((amounts or {}).get(name, "0"))
        if amount > 0:
            sums[name] = sums.get(name, 0) + amount
            found += 1
    return found


def nano_amounts(spec: Mapping[str, Any], field: str = "requests") -> dict[str, int]:
    """Return what a pod asks for or is limited to, in billionths: containers or pod, and overhead.

    ``requests`` are what a node has to give to it.
    """
    sums = _summed(spec, field)
    for name, amount in _amounts(spec, field).items():
        if name in _QOS or is_huge_page(name):
            sums[name] = amount
    for name, text in (spec.get("overhead") or {}).items():
        sums[name] = sums.get(name, 0) + _amount(text)
    return sums


def _summed(spec: Mapping[str, Any], field: str) -> dict[str, int]:
    """Add up containers, in billionths.

    Sidecars (init containers that always restart) run beside the rest; other init containers one
    after the other, before it.
    """
    sums: dict[str, int] = {}
    for container in spec.get("containers") or ():
        for name, amount in _amounts(container, field).items():
            sums[name] = sums.get(name, 0) + amount
    sidecars: dict[str, int] = {}
    for container in spec.get("initContainers") or ():
        amounts = _amounts(container, field)
        if container.get("restartPolicy") == "Always":
            for name, amount in amounts.items():
                sums[name] = sums.get(name, 0) + amount
                sidecars[name] = sidecars.get(name, 0) + amount
            amounts = sidecars
        else:
            amounts = {name: amount + sidecars.get(name, 0) for name, amount in amounts.items()}
        for name, amount in amounts.items():
            sums[name] = max(sums.get(name, 0), amount)
    return sums


def _amounts(container: Mapping[str, Any], field: str) -> dict[str, int]:
    given = (container.get("resources") or {}).get(field) or {}
    return {name: _amount(text) for name, text in given.items()}


def _amount(text: Any) -> int:
    """Return an amount; 0 for what is none, which ``quantity_causes`` refuses."""
    try:
        return nano_units(text if isinstance(text, str) else str(text))
    except ValueError:
        return 0


def _name_causes(name: str, field: str) -> list[Cause]:
    """Check the name of a resource that a container asks for."""
    if name in _STANDARD:
        return []
    causes = invalid_text(field, name, label_key)
    if "/" not in name:
        if not is_huge_page(name):
            causes.append(invalid(field, name, "must be a standard resource for containers"))
    elif not is_native(name) and not is_extended(name):
        causes.append(invalid(field, name, "doesn't follow extended resource name standard"))
    return causes


def quantity_causes(name: str, text: str, field: str) -> list[Cause]:
    """Check an amount of a resource: not negative, and whole where devices are counted."""
    try:
        amount = nano_units(text)
    except ValueError:
        return [invalid(field, text, "quantities must match the regular expression")]
    causes = [invalid(field, text, NEGATIVE)] if amount < 0 else []
    if amount % NANO and is_extended(name):
        causes.append(invalid(field, text, NOT_INTEGER))
    return causes


@lru_cache(maxsize=4096)
def _is_fine(name: str, text: str) -> bool:
    """Tell, from memory, whether nothing is wrong with an amount: most pods ask for the same."""
    return not _name_causes(name, "") and not quantity_causes(name, text, "")


def resource_causes(resources: Mapping[str, Any], field: str) -> list[Cause]:
    """Check requests and limits of one container, or of a pod."""
    causes: list[Cause] = []
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for part, amounts in (("limits", limits), ("requests", requests)):
        for name, text in amounts.items():
            if not _is_fine(name, text):
                where = f"{field}.{part}[{name}]"
                causes += _name_causes(name, where) + quantity_causes(name, text, where)
    for name, limit in limits.items():
        text = requests.get(name, limit)
        if text != limit and _amount(text) > _amount(limit):
            why = f"must be less than or equal to {name} limit of {limit}"
            causes.append(invalid(f"{field}.requests", text, why))
    return causes
