"""Write an OCI image layout: https://github.com/opencontainers/image-spec, version 1.1.

In: layers as tar files, and what a container of them runs. Out: a folder of blobs by digest. Equal
inputs are equal bytes.
"""

import gzip
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_TYPE = "application/vnd.oci.image"


def write_layout(
    folder: Path, layers: Sequence[bytes], config: Mapping[str, Any], architecture: str, name: str
) -> str:
    """Write the image ``name`` into a folder that is new or empty; return its digest."""
    blobs = folder / "blobs" / "sha256"
    blobs.mkdir(parents=True)
    packed = [gzip.compress(layer, compresslevel=6, mtime=0) for layer in layers]
    image = {
        "architecture": architecture,
        "os": "linux",
        "created": "1970-01-01T00:00:00Z",
        "config": config,
        "rootfs": {"type": "layers", "diff_ids": [_digest(layer) for layer in layers]},
        "history": [{"created": "1970-01-01T00:00:00Z", "created_by": "tools.image"}] * len(layers),
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{_TYPE}.manifest.v1+json",
        "config": _blob(blobs, _json(image), f"{_TYPE}.config.v1+json"),
        "layers": [_blob(blobs, data, f"{_TYPE}.layer.v1.tar+gzip") for data in packed],
    }
    entry = _blob(blobs, _json(manifest), f"{_TYPE}.manifest.v1+json")
    index = {
        "schemaVersion": 2,
        "mediaType": f"{_TYPE}.index.v1+json",
        "manifests": [
            {
                **entry,
                "platform": {"architecture": architecture, "os": "linux"},
                "annotations": {"org.opencontainers.image.ref.name": name},
            }
        ],
    }
    (folder / "index.json").write_bytes(_json(index))
    (folder / "oci-layout").write_bytes(_json({"imageLayoutVersion": "1.0.0"}))
    return str(entry["digest"])


def _blob(blobs: Path, data: bytes, media_type: str) -> dict[str, Any]:
    digest = _digest(data)
    (blobs / digest.partition(":")[2]).write_bytes(data)
    return {"mediaType": media_type, "digest": digest, "size": len(data)}


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _json(value: Mapping[str, object]) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
