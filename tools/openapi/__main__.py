"""Command line: start the control plane, ask it, write the recorded document."""

import argparse
import json
import lzma
import subprocess
import sys
from pathlib import Path
from typing import Any

from tools.controlplane import ApiError, Cluster, ComponentError
from tools.controlplane.golang import GoError
from tools.openapi.recording import recorded

TARGET = Path(__file__).parents[2] / "embedded/src/pocketkube/schema/recorded.json.xz"


def main(arguments: list[str] | None = None) -> int:
    """Record once; give the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.openapi", description=__doc__)
    parser.add_argument("--output", type=Path, default=TARGET, help="the file to write")
    options = parser.parse_args(arguments)
    try:
        with Cluster.start() as cluster:
            document = recorded(cluster)
    except (ApiError, ComponentError, GoError, OSError, subprocess.SubprocessError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    data = packed(document)
    options.output.write_bytes(data)
    counts = ", ".join(f"{len(part)} {name}" for name, part in document.items())
    print(f"{options.output}: {len(data)} bytes: {counts}")
    return 0


def packed(document: dict[str, Any]) -> bytes:
    """Encode and compress: the same document always gives the same bytes."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME)


if __name__ == "__main__":
    sys.exit(main())
