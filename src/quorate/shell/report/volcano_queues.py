"""Create the queues that Volcano's own scheduler would create. Called by ``app``.

Volcano's admission refuses a PodGroup whose queue does not exist, and nobody but its scheduler
creates ``root`` and ``default`` (volcano pkg/scheduler/cache newDefaultAndRootQueue).
"""

from __future__ import annotations

import asyncio

import structlog

from quorate.shell.kube.errors import ApiError, Conflict, NotFound
from quorate.shell.kube.paths import resource_path
from quorate.shell.kube.writer import Writer

log = structlog.get_logger(__name__)

_PATH = resource_path("scheduling.volcano.sh", "v1beta1", "queues")
_QUEUES = (("root", False), ("default", True))
_TRY_AGAIN_S = 10.0


class VolcanoQueues:
    """Creates the queues each time that Volcano's API appears.

    ``is_ours``: we schedule the pods of ``volcano``. Else its own scheduler does, and we do
    nothing.
    """

    def __init__(self, client: Writer, *, is_ours: bool) -> None:
        self._client = client
        self._is_ours = is_ours
        self._making: asyncio.Task[None] | None = None
        self._served = 0

    def keep(self, served: int) -> None:
        """Create them in the background, once for each value of ``served``; 0: the API is gone.

        Who makes its definitions anew has removed the queues: see ``Feed.served``.
        """
        if not self._is_ours or served == self._served:
            return
        self._served = served
        if self._making is not None:
            self._making.cancel()
        self._making = asyncio.create_task(_ensure(self._client)) if served else None


async def _ensure(client: Writer) -> None:
    """Create the queues that are missing, and open them; return when both are there."""
    for name, reclaimable in _QUEUES:
        while True:
            try:
                await _create(client, name, reclaimable=reclaimable)
            except NotFound:
                await asyncio.sleep(_TRY_AGAIN_S)  # its CRD may follow that of PodGroup
            except ApiError as error:
                log.warning("cannot create a Volcano queue", queue=name, problem=error.message)
                await asyncio.sleep(_TRY_AGAIN_S)
            else:
                break


async def _create(client: Writer, name: str, *, reclaimable: bool) -> None:
    queue = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"weight": 1, "reclaimable": reclaimable},
    }
    try:
        await client.post(_PATH, queue)
    except Conflict:
        return  # it is there, and its state is its controller's
    await client.patch(f"{_PATH}/{name}/status", {"status": {"state": "Open"}}, "merge")
