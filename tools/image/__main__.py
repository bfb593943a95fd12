"""Command line: build the image, and push it."""

import argparse
import subprocess
import sys
from pathlib import Path

from tools.controlplane.build import BuildError
from tools.controlplane.build import build as build_programs
from tools.controlplane.cluster import say
from tools.controlplane.golang import GoError
from tools.controlplane.versions import binary
from tools.image.building import ImageError, build


def main(arguments: list[str] | None = None) -> int:
    """Build once; give the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.image", description=__doc__)
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("build/image"),
        help="folder of the layout (build/image)",
    )
    parser.add_argument(
        "--push", metavar="REFERENCE", help="then push it, by crane: REGISTRY/quorate:VERSION"
    )
    options = parser.parse_args(arguments)
    try:
        digest = build(options.output)
        print(f"{options.output}: {digest}")
        if options.push:
            print(push(options.output, options.push))
    except subprocess.CalledProcessError as error:
        print(f"Error: {' '.join(map(str, error.cmd))}\n{error.stderr}", file=sys.stderr)
        return 1
    except (*ImageError, BuildError, GoError, OSError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    return 0


def push(layout: Path, reference: str) -> str:
    """Push a layout; return the reference by digest. Credentials are those of ``docker login``.

    Raises subprocess.CalledProcessError, and what building crane raises.
    """
    build_programs(say, ["crane"])
    command = [str(binary("crane")), "push", str(layout), reference]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
