"""Do for Volcano's queues what its own scheduler would do. Called by ``app``.

In: touched gangs. Out: queues, and what is taken of each. Volcano's admission refuses a PodGroup
whose queue does not exist, and nobody but its scheduler creates ``root`` and ``default`` (volcano
pkg/scheduler/cache newDefaultAndRootQueue). It refuses a queue below one of which gangs take
something, and nobody but its scheduler says that (updateQueueStatus).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import partial

import structlog

from quorate.core.model import GangKey
from quorate.core.model.quantity import format_amount
from quorate.core.scheduler import Scheduler
from quorate.core.telling.queue_amounts import Amounts, QueueAmounts
from quorate.dialects import WITH_QUEUES
from quorate.shell.kube.errors import ApiError, Conflict, Forbidden, NotFound
from quorate.shell.kube.paths import resource_path
from quorate.shell.kube.writer import Backoff, Writer
from quorate.shell.process.contained import contained
from quorate.shell.report.write_queue import WriteQueue

log = structlog.get_logger(__name__)

_PATH = resource_path("scheduling.volcano.sh", "v1beta1", "queues")
_QUEUES = (("root", False), ("default", True))
_STATES_OWNER = {"fieldManager": "queue-controller"}
"""Volcano's controller applies the state by this name: owned by another it could not close one."""
_AMOUNTS_EVERY_S = 2.0
"""So often the status of a queue is written at most; Volcano's scheduler does it each second."""
_MEMBERS_AT_ONCE = 2_000
_TRY_AGAIN_S = 10.0
_TRY_AGAIN_S_MAX = 60.0
NOT_GRANTED = (
    "quorate may not create queues, and Volcano refuses PodGroups whose queue does not exist: grant"
    " it with quorate manifests, without the option --without volcano-queues, or create them"
)


class VolcanoQueues:
    """Creates the queues each time that Volcano's API appears, and keeps their amounts.

    If we do not schedule the pods of ``volcano``, its own scheduler does, and we do nothing.
    """

    def __init__(self, client: Writer, writes: WriteQueue, scheduler: Scheduler) -> None:
        self._client = client
        self._writes = writes
        self._scheduler = scheduler
        self._is_ours = "volcano" in scheduler.policy.scheduler_names
        self._keeping: asyncio.Task[None] | None = None
        self._served = 0
        self._amounts: QueueAmounts | None = None
        self._said: dict[str, Amounts] = {}
        """What was written of queues; the watch may not have shown it yet."""
        self._news = asyncio.Event()

    def keep(self, served: int) -> None:
        """Keep them in the background, anew for each value of ``served``; 0: the API is gone.

        Who makes its definitions anew has removed the queues: see ``Feed.served``.
        """
        if not self._is_ours or served == self._served:
            return
        self._served = served
        if self._keeping is not None:
            self._keeping.cancel()
        self._amounts = None
        self._keeping = asyncio.create_task(self._keep()) if served else None

    def touch(self, keys: Iterable[GangKey]) -> None:
        """Write what is taken of the queues of these gangs, if it is not what it was."""
        if self._amounts is None:
            return
        if with_queues := [key for key in keys if key.dialect in WITH_QUEUES]:
            self._amounts.touch(with_queues)
            self._news.set()

    async def _keep(self) -> None:
        await _ensure(self._client)
        self._amounts = amounts = QueueAmounts()
        self.touch(self._scheduler.cluster.gangs)
        while True:
            await self._news.wait()
            self._news.clear()
            with contained(self._client.note, "report", "amounts of Volcano queues"):
                while amounts.count(self._scheduler.cluster.gangs, _MEMBERS_AT_ONCE):
                    await asyncio.sleep(0)
                self._write(amounts)
            await asyncio.sleep(_AMOUNTS_EVERY_S)

    def _write(self, taken: QueueAmounts) -> None:
        queues = self._scheduler.cluster.queues
        for name, amounts in taken.by_queue(queues).items():
            known = queues[name].allocated
            said = self._said.pop(name, known)
            if amounts == known == said:
                continue
            self._said[name] = amounts
            patch = {"status": {"allocated": _patch(amounts, dict(known) | dict(said))}}
            send = partial(self._client.patch, f"{_PATH}/{name}/status", patch, "merge")
            self._writes.put(("queue", name), send, urgent=True, lost=self._news.set)


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


def _patch(amounts: Amounts, said: Iterable[str]) -> dict[str, str | None]:
    """Return the merge patch of ``status.allocated``; ``said`` are resources that it may name."""
    taken = {"cpu": 0, "memory": 0, **dict(amounts)}
    written = {resource: format_amount(resource, amount) for resource, amount in taken.items()}
    return {**dict.fromkeys(said), **written}
