"""CustomResourceDefinition: names are accepted, and the kind is served, within the write."""

from __future__ import annotations

from pocketkube.objects import Object
from pocketkube.registry import custom
from pocketkube.registry.rules.base import Rules, Surroundings

FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
"""Holds a definition until its objects are gone."""


def _prepare_create(definition: Object, around: Surroundings) -> None:
    definition.pop("status", None)
    definition["metadata"].setdefault("finalizers", []).append(FINALIZER)
    _set_status(definition, around)


def _prepare_update(definition: Object, old: Object, around: Surroundings) -> None:
    definition["status"] = old.get("status") or {}
    _set_status(definition, around)


def _set_status(definition: Object, around: Surroundings) -> None:
    if not custom.validate_definition(definition):
        others = around.find_all(custom.BUCKET)
        definition["status"] = custom.established_status(definition, around.now_s(), others)


RULES = Rules(
    defaults=custom.set_defaults,
    prepare_create=_prepare_create,
    prepare_update=_prepare_update,
    validate=custom.validate_definition,
    has_generation=True,
)
