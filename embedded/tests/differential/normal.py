"""Answers without what differs from one call to the next: times, UIDs, versions, drawn names."""

import datetime
import json
import re
from typing import Any

_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_TOKEN = re.compile(r"eyJ[\w-]+\.[\w-]+\.[\w-]+")
_VOLUME = re.compile(r"kube-api-access-\w{5}")
_ADDRESS = re.compile(r"\b10\.96\.\d{1,3}\.\d{1,3}\b")
_KEY = re.compile(r"Key: /\S+,")
_RECORD = re.compile(r"(in record|in the precondition) \(\d+\)")
_MET = re.compile(r"(ResourceVersion in (?:precondition|object meta)): \d+")
_AGE = re.compile(r"(\d+[smhdy])+( ago)?|<invalid>")
_NEAR = datetime.timedelta(days=2)
_NODE_PORTS = range(30000, 32768)


class Normaliser:
    """Normalises the answers of one server in one sequence; versions count from the first seen."""

    def __init__(self, own_name: str) -> None:
        self._own_name = own_name
        self._versions: dict[str, str] = {}
        self._drawn: dict[str, str] = {}

    def __call__(self, body: Any) -> Any:
        """Return a copy to compare."""
        normal = self._value(json.loads(json.dumps(body)), "")
        text = json.dumps(normal)
        for drawn, shown in self._drawn.items():
            text = text.replace(drawn, shown)
        return json.loads(text)

    def _value(self, value: Any, key: str) -> Any:
        if isinstance(value, dict):
            return self._object(value, key)
        if isinstance(value, list):
            if key == "cells":
                value = [_cell(cell) for cell in value]
            return [self._value(item, "") for item in value]
        if isinstance(value, str):
            return self._text(value)
        if key == "nodePort" and value in _NODE_PORTS:
            return "<port>"
        return value

    def _object(self, value: dict[str, Any], key: str) -> dict[str, Any]:
        if key == "metadata":
            value = self._metadata(value)
        return {
            name: item if name == "resourceVersion" else self._value(item, name)
            for name, item in sorted(value.items())
        }

    def _metadata(self, metadata: dict[str, Any]) -> dict[str, Any]:
        metadata.pop("managedFields", None)  # nobody owns fields on the embedded server
        is_list = "uid" not in metadata and "name" not in metadata
        version = metadata.get("resourceVersion")
        if version and is_list:
            metadata["resourceVersion"] = "<version of a list>"
        elif version:
            metadata["resourceVersion"] = self._versions.setdefault(
                version, f"<version {len(self._versions)}>"
            )
        if is_list and metadata.get("continue"):
            metadata["continue"] = "<continue>"
        base, name = metadata.get("generateName", ""), metadata.get("name", "")
        if base and name[:-5] == base[:58] and name not in self._drawn:
            self._drawn[name] = name[:-5] + "?????"
        return metadata

    def _text(self, text: str) -> str:
        text = text.replace(self._own_name, "@ns@")
        if len(text) < 9:
            return text
        text = _TIME.sub(_shown_time, text)
        text = _UID.sub("<uid>", text)
        text = _TOKEN.sub("<token>", text)
        text = _KEY.sub("Key: <key>,", text)
        text = _RECORD.sub(r"\1 (<version>)", text)
        text = _MET.sub(r"\1: <version>", text)
        text = _VOLUME.sub("kube-api-access-?????", text)
        return _ADDRESS.sub("<address>", text)


def _cell(cell: Any) -> Any:
    if not isinstance(cell, str):
        return cell
    return "<age>" if _AGE.fullmatch(cell) else cell


def _shown_time(match: re.Match[str]) -> str:
    """Hide a time that a server's clock gave; keep one that a request made up."""
    try:
        when = datetime.datetime.fromisoformat(match[0].replace("Z", "+00:00"))
    except ValueError:
        return match[0]
    now = datetime.datetime.now(datetime.UTC)
    if abs(when - now) > _NEAR:
        return match[0]
    return "<time.micro>" if match[1] else "<time>"
