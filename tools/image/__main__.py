"""Command line: build the image."""

import argparse
import subprocess
import sys
from pathlib import Path

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
    options = parser.parse_args(arguments)
    try:
        digest = build(options.output)
    except subprocess.CalledProcessError as error:
        print(f"Error: {' '.join(map(str, error.cmd))}\n{error.stderr}", file=sys.stderr)
        return 1
    except (ImageError, OSError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    print(f"{options.output}: {digest}")
    print(f"To a registry: crane push {options.output} REGISTRY/quorate:VERSION")
    return 0


if __name__ == "__main__":
    sys.exit(main())
