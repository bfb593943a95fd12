"""Both servers, each alone: nothing but an API server, so that only requests change it."""

import contextlib
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from embedded.tests.differential.asking import Request, Server
from embedded.tests.differential.kinds import definitions
from tools.controlplane import Access, Cluster
from tools.embedded import Embedded

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@contextlib.contextmanager
def both(folder: Path | None = None) -> Iterator[tuple[Server, Server]]:
    """Start a real and an embedded server with the CRDs of the sequences."""
    with contextlib.ExitStack() as stack:
        home = folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        real = stack.enter_context(Cluster.start(home / "real", controllers=False))
        extra = ["--no-agents", "--no-controllers"]
        embedded = stack.enter_context(Embedded.start(home / "embedded", extra=extra))
        yield (
            stack.enter_context(contextlib.closing(_ready(real))),
            stack.enter_context(contextlib.closing(_ready(embedded))),
        )


def _ready(cluster: Access) -> Server:
    server = Server(cluster)
    for crd in definitions():
        answer = server.ask(Request(method="POST", path=CRDS, body=crd))
        assert answer.code == 201, answer
        names = crd["spec"]["names"]["plural"]
        served = Request(method="GET", path=f"/apis/{crd['spec']['group']}/v1/{names}")
        for _ in range(200):
            if server.ask(served).code == 200:
                break
            time.sleep(0.05)
        else:
            raise AssertionError(f"{names} are not served")
    return server
