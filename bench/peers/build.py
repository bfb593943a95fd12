"""Build the peer that is not in the control plane's cache: scheduler-plugins' coscheduling.

In: Go and ``coscheduling/`` (a module of its own). Out: one cached binary. Called by
``python -m bench`` and ``python -m bench.peers.build``. An interrupted build leaves no binary.
"""

import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tools.controlplane import golang
from tools.controlplane.build import FLAGS, BuildError, run
from tools.controlplane.versions import cache_root

SCHEDULER_PLUGINS = "v0.33.5"
KUBERNETES = "v1.33.5"  # the version that scheduler-plugins v0.33.5 requires
MODULE_DIR = Path(__file__).parent / "coscheduling"
TITLE = f"scheduler-plugins {SCHEDULER_PLUGINS} coscheduling"

_VERSION_VARIABLES = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
# Without the version stamp clients fail to parse "v0.0.0-master+$Format".
_STAMP = " ".join(f"-X {name}.gitVersion={KUBERNETES}" for name in _VERSION_VARIABLES)


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
    if target.is_file():
        return target
    go = golang.find_go(progress)
    progress(f"building {TITLE} (about 4 minutes on two cores)")
    target.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=".coscheduling-", dir=target.parent))
    command = [str(go), "build", *FLAGS, "-ldflags", f"-s -w {_STAMP}"]
    command += ["-o", str(work / target.name), "."]
    try:
        environment = golang.environment(GOFLAGS="-mod=readonly")
        elapsed_s = run(command, MODULE_DIR, environment, TITLE, progress)
        (work / target.name).rename(target)  # the same folder: atomic
    except BuildError as error:
        raise BuildError(f"{error} Or leave it out: --peers ceiling,quorate,native") from error
    finally:
        shutil.rmtree(work, ignore_errors=True)
    progress(f"built {TITLE} in {elapsed_s:.0f} s")
    return target


if __name__ == "__main__":
    print(build_coscheduling())
