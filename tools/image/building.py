"""Build the image: three layers, of which the lower ones change seldom.

In: what ``debian`` and ``python`` give. Out: a folder in the OCI image layout.
"""

import platform
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from quorate import __version__
from tools.image.debian import DebianError, base
from tools.image.layout import write_layout
from tools.image.python import PythonError, compiled, packages, program
from tools.image.tree import layer

ImageError = (DebianError, PythonError)
USER = "65532:65532"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
CONFIG: Mapping[str, Any] = {
    "User": USER,
    "WorkingDir": "/tmp",
    "Entrypoint": ["/usr/local/bin/quorate"],
    "Cmd": ["run"],
    "Env": [
        "PATH=/usr/local/bin:/usr/bin",
        "LANG=C.UTF-8",
        "PYTHONDONTWRITEBYTECODE=1",
        "PYTHONUNBUFFERED=1",
    ],
    "Labels": {
        "org.opencontainers.image.title": "quorate",
        "org.opencontainers.image.description": "Gang scheduling for Kubernetes",
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.version": __version__,
    },
    "ExposedPorts": {"10271/tcp": {}, "10273/tcp": {}},
}


def build(folder: Path) -> str:
    """Write the layout, in place of what is there; return the image's digest.

    Raises one of ``ImageError``, and subprocess.CalledProcessError.
    """
    below = base()
    below |= compiled({}, below)
    middle = packages()
    middle |= compiled(below, middle)
    own = program()
    own |= compiled(below, own)
    partial = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        layers = [layer(tree) for tree in (below, middle, own)]
        machine = ARCHITECTURES.get(platform.machine(), platform.machine())
        digest = write_layout(partial, layers, CONFIG, machine, __version__)
        shutil.rmtree(folder, ignore_errors=True)
        partial.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return digest
