"""JSON schemas of Kubernetes' kinds, from the document that was recorded of a real API server.

In: pocketkube's recording. Out: a folder for ``kubeconform -schema-location``. Called by
``test_schemas``.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pocketkube.schema.document import Document

LOCATION = "{{ .ResourceKind }}-{{ .Group }}-{{ .ResourceAPIVersion }}.json"
_PREFIX = "#/components/schemas/"
_KEPT = ("type", "required", "enum", "format", "oneOf", "minimum", "maximum", "description")


def write_schemas(folder: Path, kinds: Iterable[tuple[str, str]]) -> None:
    """Write one file for each (apiVersion, kind). Raises KeyError for one that is not recorded."""
    document = Document.load()
    for api_version, kind in kinds:
        group, _, version = api_version.rpartition("/")
        name = document.schema_name(group, version, kind)
        definitions: dict[str, Any] = {}
        schema = _strict(document.schemas[name], document.schemas, definitions)
        # kubeconform takes the version for the group where there is none.
        file = folder / f"{kind.lower()}-{group or version}-{version}.json"
        file.write_text(json.dumps({**schema, "definitions": definitions}))


def _strict(
    schema: Mapping[str, Any], known: Mapping[str, Any], definitions: dict[str, Any]
) -> dict[str, Any]:
    """Return a schema that refuses fields it has not, and fill in what it refers to."""
    if "$ref" in schema or "allOf" in schema:
        name = (schema.get("$ref") or schema["allOf"][0]["$ref"]).removeprefix(_PREFIX)
        if name not in definitions:
            definitions[name] = {}  # types contain themselves
            definitions[name] = _strict(known[name], known, definitions)
        return {"$ref": f"#/definitions/{name}"}
    made = {key: schema[key] for key in _KEPT if key in schema}
    if made.get("format") in ("int-or-string", "byte"):
        del made["format"]
    if "properties" in schema:
        below = schema["properties"].items()
        made["properties"] = {key: _strict(one, known, definitions) for key, one in below}
        made["additionalProperties"] = False
    elif isinstance(schema.get("additionalProperties"), Mapping):
        of_all = schema["additionalProperties"]
        made["additionalProperties"] = _strict(of_all, known, definitions)
    if "items" in schema:
        made["items"] = _strict(schema["items"], known, definitions)
    return made
