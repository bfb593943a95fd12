"""Goal: a defect of ours in the shell costs what met it, and breaks no promise (law 2).

Method: at each entry of the shell that the loop, a task or a watch calls, some calls raise. Whole
runs with faults are judged as ever; what was raised is told as an incident, and nothing else is.
"""

from inspect import iscoroutinefunction
from itertools import count

import pytest

from quorate.shell.app import App
from quorate.shell.commit.binder import Binder
from quorate.shell.commit.device_claims import DeviceClaims
from quorate.shell.commit.evictor import Evictor
from quorate.shell.commit.preemptor import Preemptor
from quorate.shell.commit.volume_claims import VolumeClaims
from quorate.shell.gauges import Gauges
from quorate.shell.report import bodies, owners
from quorate.shell.report.bind_outcomes import BindOutcomes
from quorate.shell.report.reporter import Reporter
from quorate.shell.report.self_check import SelfCheck
from quorate.shell.watch.feed import Feed
from simulate.run import run
from simulate.themes.devices import Devices
from simulate.themes.preemption import Preemption
from simulate.themes.volumes import Volumes

EVERY, TIMES = 5, 6
"""The first call raises, then each fifth, six of them."""
FIRST_SEED = 9
"""Its run has what is rare: an eviction."""
UNTIL_LISTED = ("no node is filled over its allocatable", "only pods that wait are placed")
"""What a missed event may cost until the next list: nobody knows what it was about."""
ENTRIES = {
    "observer: outcomes": (BindOutcomes, "observe", ()),
    "observer: self-check": (SelfCheck, "observe", ()),
    "before a decision": (App, "_ready", ()),
    "after a decision": (App, "_on_touched", ()),
    "commit: binds": (Binder, "submit", ()),
    "commit: a bind": (Binder, "_bind", ()),
    "commit: an eviction": (Evictor, "_evict", ()),
    "commit: a preemption": (Preemptor, "_preempt", (Preemption,)),
    "commit: device claims": (DeviceClaims, "_write", (Devices,)),
    "commit: devices taken back": (DeviceClaims, "take_back", (Devices,)),
    "commit: volume claims": (VolumeClaims, "_prepare", (Volumes,)),
    "commit: volume claims let go": (VolumeClaims, "_take_back", (Volumes,)),
    "report: owners": (owners, "found_out", ()),
    "report: a tick": (Reporter, "_tick", ()),
    "report: a body": (bodies, "event", ()),
    "report: a request": (Reporter, "_send_series", ()),
    "report: gauges": (Gauges, "_show", ()),
    "watch: a list": (Feed, "_listed", ()),
    "watch: an object": (Feed, "_changed", ()),
    "watch: an object that is gone": (Feed, "_gone", ()),
}


class PlantedError(Exception):
    """What no code of ours expects."""


def planted(original):
    """Return the entry with a defect; the calls are counted over all replicas."""
    calls, raised = count(), []

    def strike():
        if next(calls) % EVERY == 0 and len(raised) < TIMES:
            raised.append(True)
            raise PlantedError

    def entry(*args, **kwargs):
        strike()
        return original(*args, **kwargs)

    async def entry_of_a_task(*args, **kwargs):
        strike()
        return await original(*args, **kwargs)

    entry = entry_of_a_task if iscoroutinefunction(original) else entry
    entry.raised = raised
    entry.__qualname__ = original.__qualname__
    return entry


@pytest.mark.parametrize("name", ENTRIES)
def test_what_raises_at_an_entry_of_the_shell_breaks_no_promise(monkeypatch, name):
    owner, method, themes = ENTRIES[name]
    entry = planted(getattr(owner, method))
    monkeypatch.setattr(owner, method, entry)
    seeds = count(FIRST_SEED)
    while not entry.raised:
        outcome = run(next(seeds), themes=themes)
        told = [one for one in outcome.violations if "PlantedError" in one.text]
        costs = UNTIL_LISTED if name.startswith("watch:") else ()
        others = [one for one in outcome.violations if one not in told]
        assert [str(one) for one in others if one.promise not in costs] == []
    assert told
    assert all("met a defect of our own" in one.text for one in told)
