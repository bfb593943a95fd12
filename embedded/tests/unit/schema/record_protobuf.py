"""Have Go fill one object of each kind and encode it twice; write ``protobuf_recorded.json.xz``.

``python -m embedded.tests.unit.schema.record_protobuf`` from the repository's root; needs Go, no
cluster. One line of JSON each: the object, and its protobuf, a letter for each byte (Latin-1).
"""

import base64
import json
import lzma
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from pocketkube.schema.document import Document
from tools.controlplane import golang
from tools.controlplane.build import MODULE_DIR

RECORDED = Path(__file__).with_name("protobuf_recorded.json.xz")
_PROGRAM = Path(__file__).parents[4] / "tools" / "openapi" / "gosamples" / "main.go"


def main() -> int:
    """Record every kind that a request may hold."""
    wanted = bodies()
    command = [str(golang.find_go(print)), "run", str(_PROGRAM)]
    environment = golang.environment(GOFLAGS="-mod=readonly")
    done = subprocess.run(
        command, cwd=MODULE_DIR, env=environment, stdout=subprocess.PIPE, check=True
    )
    samples = []
    for sample in map(json.loads, done.stdout.splitlines()):
        obj = sample["json"]
        if (obj.get("apiVersion"), obj.get("kind")) in wanted:
            samples.append([obj, base64.b64decode(sample["protobuf"]).decode("latin-1")])
    text = json.dumps(samples, separators=(",", ":"), ensure_ascii=False)
    RECORDED.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
    print(f"{RECORDED.name}: {len(samples)} objects, {RECORDED.stat().st_size} bytes")
    return 0


def samples() -> Iterator[tuple[dict, bytes]]:
    """Give what was recorded: objects, and the same as protobuf."""
    for obj, packed in json.loads(lzma.decompress(RECORDED.read_bytes())):
        yield obj, packed.encode("latin-1")


def bodies() -> set[tuple[str, str]]:
    """Name, by apiVersion and kind, everything that the body of a POST, PUT or DELETE may be."""
    found = {("v1", "DeleteOptions")}
    document = Document.load()
    for resource in document.resources():
        found.add((resource.api_version, resource.kind))
        for sub in resource.subresources.values():
            if document.schema_name(sub.group, sub.version, sub.kind):  # else it is a query's
                found.add((f"{sub.group}/{sub.version}".lstrip("/"), sub.kind))
    return found


if __name__ == "__main__":
    sys.exit(main())
