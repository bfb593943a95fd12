"""Create the queues that Volcano's own scheduler would create. Called by ``app``.

Volcano's admission refuses a PodGroup whose queue does not exist, and nobody but its scheduler
creates ``root`` and ``default`` (volcano pkg/scheduler/cache newDefaultAndRootQueue).
"""

from __future__ import annotations

import asyncio

import structlog

from quorate.shell.kube.errors import ApiError, Conflict, Forbidden, NotFound
from quorate.shell.kube.paths import resource_path
from quorate.shell.kube.writer import Backoff, Writer

log = structlog.get_logger(__name__)

_PATH = resource_path("scheduling.volcano.sh", "v1beta1", "queues")
_QUEUES = (("root", False), ("default", True))
_STATES_OWNER = {"fieldManager": "queue-controller"}
"""Volcano's controller applies the state by this name: owned by another it could not close one."""
_TRY_AGAIN_S = 10.0
_TRY_AGAIN_S_MAX = 60.0
NOT_GRANTED = (
    "quorate may not create queues, and Volcano refuses PodGroups whose queue does not exist: grant"
    " it with quorate manifests, without the option --without volcano-queues, or create them"
)


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
    """Create the queues that are missing, and open them; return when both are there.

    What is wrong is said once for as long as it stays the same.
    """
    said = ""
    backoff = Backoff(_TRY_AGAIN_S, _TRY_AGAIN_S_MAX)
    for name, reclaimable in _QUEUES:
        while True:
            try:
                await _create(client, name, reclaimable=reclaimable)
            except NotFound:
                await asyncio.sleep(_TRY_AGAIN_S)  # its CRD may follow that of PodGroup
            except ApiError as error:
                problem = await _problem(client, error)
                if problem != said:
                    log.warning("cannot create a Volcano queue", queue=name, problem=problem)
                said = problem
                await backoff.wait(error)
            except Exception as error:  # a defect of ours
                client.note("report", f"Volcano queue {name}", error)
                await asyncio.sleep(_TRY_AGAIN_S)
            else:
                break


async def _problem(client: Writer, error: ApiError) -> str:
    right = {"verb": "create", "group": "scheduling.volcano.sh", "resource": "queues"}
    is_withheld = isinstance(error, Forbidden) and await client.lacks_right(**right)
    return NOT_GRANTED if is_withheld else error.message


async def _create(client: Writer, name: str, *, reclaimable: bool) -> None:
    queue = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
    }
    try:
        await client.post(_PATH, {**queue, "spec": {"weight": 1, "reclaimable": reclaimable}})
    except Conflict:
        return  # it is there, and its state is its controller's
    opened = {**queue, "status": {"state": "Open"}}
    await client.patch(f"{_PATH}/{name}/status", opened, "apply", _STATES_OWNER)
