"""Build the peer that is not in the control plane's cache: scheduler-plugins' coscheduling.

In: Go and ``coscheduling/`` (a module of its own). Out: one cached binary. Called by
``python -m bench`` and ``python -m bench.peers.build``.
"""

import sys
from collections.abc import Callable
from pathlib import Path

from tools.controlplane.build import BuildError, build_program
from tools.controlplane.versions import cache_root

SCHEDULER_PLUGINS = "v0.33.5"
KUBERNETES = "v1.33.5"  # the version that scheduler-plugins v0.33.5 requires
MODULE_DIR = Path(__file__).parent / "coscheduling"
TITLE = f"scheduler-plugins {SCHEDULER_PLUGINS} coscheduling"


def say(message: str) -> None:
    """Print progress to standard error."""
    print(f"bench: {message}", file=sys.stderr, flush=True)


def coscheduling_binary() -> Path:
    """Give the path that the binary has once it is built."""
    folder = cache_root() / "peers" / f"scheduler-plugins-{SCHEDULER_PLUGINS}" / "bin"
    return folder / "coscheduling"


def build_coscheduling(progress: Callable[[str], None] = say) -> Path:
    """Build the binary unless it is there, and give its path. Raises GoError and BuildError."""
    target = coscheduling_binary()
    try:
        build_program(target, MODULE_DIR, ".", TITLE, progress, version=KUBERNETES)
    except BuildError as error:
        raise BuildError(f"{error} Or leave it out: --peers ceiling,quorate,native") from error
    return target


if __name__ == "__main__":
    print(build_coscheduling())
