"""The kinds that the sequences are about, with good objects of each (``objects.yaml``)."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from embedded.tests.differential.playing import OWN

_HERE = Path(__file__).parent
LABELS = {"sequence": OWN, "app": "a"}


@dataclass(frozen=True, slots=True)
class Kind:
    """One resource, as the sequences use it."""

    plural: str
    kind: str
    path: str
    objects: list[dict[str, Any]]
    more: tuple[str, ...]  # subresources
    dry: bool  # only ask what would be: somebody acts on its objects at once
    fixed_name: str = ""

    @property
    def is_namespaced(self) -> bool:
        return f"/namespaces/{OWN}/" in self.path

    @property
    def api_version(self) -> str:
        root, *parts = self.path.strip("/").split("/")
        return parts[0] if root == "api" else "/".join(parts[:2])

    def name(self, letter: str) -> str:
        """Name an object: those outside of namespaces are named after the sequence."""
        if self.fixed_name:
            return self.fixed_name
        return letter if self.is_namespaced else f"{OWN}-{letter}"

    def object(self, index: int, name: str) -> dict[str, Any]:
        """Return a good object of that name."""
        found = self.objects[index % len(self.objects)]
        given = found.get("metadata", {})
        labels = {**LABELS, **given.get("labels", {})}
        head = {"apiVersion": self.api_version, "kind": self.kind}
        return {**head, **found, "metadata": {**given, "name": name, "labels": labels}}


def _kinds() -> dict[str, Kind]:
    described = yaml.safe_load((_HERE / "objects.yaml").read_text())
    return {
        plural: Kind(
            plural,
            one["kind"],
            one["path"],
            one["objects"],
            tuple(one.get("more", ())),
            one.get("dry", False),
            one.get("name", ""),
        )
        for plural, one in described.items()
    }


KINDS = _kinds()


def definitions() -> list[dict[str, Any]]:
    """Return the CRDs that are there during all sequences."""
    return list(yaml.safe_load_all((_HERE / "crds.yaml").read_text()))
