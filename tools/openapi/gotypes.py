"""Ask Go itself for what the OpenAPI document does not say of the API's types.

In: Go, the modules that the control plane is built from, ``gotypes/main.go``. Out: facts by the
document's name of each type. Called by the recording.
"""

import json
import subprocess
from pathlib import Path
from typing import Any

from tools.controlplane import golang
from tools.controlplane.build import MODULE_DIR
from tools.controlplane.cluster import say

_PROGRAM = Path(__file__).parent / "gotypes" / "main.go"


def facts() -> dict[str, dict[str, Any]]:
    """Run the program in the control plane's module. Raises CalledProcessError, GoError."""
    say("asking Go about its types (half a minute)")
    command = [str(golang.find_go(say)), "run", str(_PROGRAM)]
    environment = golang.environment(GOFLAGS="-mod=readonly")
    done = subprocess.run(
        command, cwd=MODULE_DIR, env=environment, stdout=subprocess.PIPE, check=True
    )
    found: dict[str, dict[str, Any]] = json.loads(done.stdout)
    return found
