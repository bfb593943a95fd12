"""Goal: what runs beside the loop goes on after a defect of ours, and tells of it (law 2).

Method: the first call raises; the runs of the simulation know no Volcano.
"""

import asyncio

from quorate.core.model.policy import Policy
from quorate.core.scheduler import Scheduler
from quorate.shell.report import volcano_queues
from quorate.shell.report.volcano_queues import VolcanoQueues
from quorate.shell.report.write_queue import WriteQueue
from tools.testing import HANGS_S


class Fragile:
    """Raises at its first call; ``went_on`` is set at the second one, or when so many are done."""

    def __init__(self, calls=2):
        self.left = calls
        self.went_on = asyncio.Event()
        self.noted = []

    def __call__(self, *_):
        self.left -= 1
        if not self.left:
            self.went_on.set()
        if not self.noted:
            raise KeyError("planted")

    def note(self, stage, about, error):
        self.noted.append((stage, about, str(error)))

    async def goes_on(self):
        async with asyncio.timeout(HANGS_S):
            await self.went_on.wait()


async def test_volcanos_queues_are_made_after_a_defect(monkeypatch):
    """It was tried no more, and nobody heard of it."""
    monkeypatch.setattr(volcano_queues, "_TRY_AGAIN_S", 0.01)
    fragile = Fragile(calls=3)

    async def create(*_args, **_options):
        fragile()

    monkeypatch.setattr(volcano_queues, "_create", create)
    scheduler = Scheduler(Policy(scheduler_names=("volcano",)))
    queues = VolcanoQueues(fragile, WriteQueue(note=fragile.note), scheduler)
    queues.keep(1)
    await fragile.goes_on()
    assert fragile.noted == [("report", "Volcano queue root", "'planted'")]
