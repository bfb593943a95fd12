"""Kinds of other projects, as far as the simulation uses them, written from their contract.

As in Volcano, PodGroup has no status subresource, so its status is written with the object.
"""

from __future__ import annotations

from pocketkube.objects import Object

_ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}

VOLCANO_POD_GROUPS: Object = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "podgroups.scheduling.volcano.sh"},
    "spec": {
        "group": "scheduling.volcano.sh",
        "scope": "Namespaced",
        "names": {
            "kind": "PodGroup",
            "listKind": "PodGroupList",
            "plural": "podgroups",
            "singular": "podgroup",
        },
        "versions": [
            {
                "name": "v1beta1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"spec": _ANYTHING, "status": _ANYTHING},
                    }
                },
            }
        ],
    },
}
