"""Keeps each node's reservation and taints as the rules say: nodes in, patches and Events out.

Run by ``process`` while it leads. The rules are in ``reservations``; here is when they are applied:
to each new version of a node, again while pods keep a pending node from its next owner, and rarely
to a node that is given to and fro (``hold``). A patch holds for the version that was judged; when
that is an old one the API server refuses it, and the newer one is judged when it comes.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import msgspec
import structlog

from quorate.cks import reservations
from quorate.cks.guests import Guests
from quorate.cks.hold import Asked, Hold
from quorate.cks.reservations import Node, Reason, Verdict
from quorate.cks.rules import Rules
from quorate.cks.work_queue import WorkQueue
from quorate.shell.kube.client import KubeClient
from quorate.shell.kube.errors import ApiError
from quorate.shell.kube.lists import events
from quorate.shell.kube.lists.pages import UNREADABLE
from quorate.shell.kube.lists.reflector import Pace, Reflector
from quorate.shell.kube.objects import NamedObject
from quorate.shell.kube.paths import resource_path
from quorate.shell.kube.writer import End, Priority, Rule, Writer
from quorate.shell.process.clock import SteadyClock
from quorate.shell.report import bodies
from quorate.shell.report.write_queue import WriteQueue

log = structlog.get_logger(__name__)

CONTROLLER: Final = "quorate-cks-nodes"
"""Who says the Events; also the name of the Lease."""
WORKERS: Final = 32
LOOKERS: Final = 16
"""Nodes at a time that are written to, and that are looked at for pods: a list of pods waits until
the API server has heard of all writes."""
_PATH: Final = resource_path("", "v1", "nodes")
_EVENTS: Final = resource_path("events.k8s.io", "v1", "events", "default")
_RULE: Final = Rule(Priority.REPORT, tries_max=5)
_AGAIN_S: Final = 30.0
"""After a write that was refused."""
_CLOSED_S: Final = 2.0
"""Between closing a node and looking for pods on it: binds are under way."""
_SOON_S: Final = 0.1
_LOOK_S: Final = 5.0
_LOOKS_PER_S: Final = 100.0
"""How often a node that pods keep is looked at, and all such nodes together at most."""
_BESIDES: Final = ""
"""What is written where the reservation and its taint stay as they are."""
_BAD: Final = {*Reason} - {Reason.PENDING}

_NODE: Final = msgspec.json.Decoder(Node)
_NAMED: Final = msgspec.json.Decoder(NamedObject)


class _Known:
    """What is known of one node, from its first version to its end."""

    def __init__(self, node: Node) -> None:
        self.node = node
        """Its newest version."""
        self.closed_at_s = 0.0
        """When it was closed to users' pods, at the latest."""
        self.found: tuple[Node, list[str]] | None = None
        """In which version it was looked at, and the pods that keep it."""
        self.hold = Hold()
        self.said: Reason | None = None
        """What the latest Event about a write gave as the reason."""
        self.reason: str | None = None
        """Why it is not whose it should be, "" if it is; None: it is not part of the life-cycle."""


class Nodes:
    """One term of a controller: ``run`` it while we lead."""

    def __init__(
        self,
        client: KubeClient,
        rules: Rules,
        *,
        may_write: Callable[[], bool],
        clock: SteadyClock,
        instance: str,
    ) -> None:
        """``instance`` is who says the Events."""
        self._client = client
        self._rules = rules
        self._clock = clock
        self._instance = instance
        chance = random.Random(instance).random
        self._writer = Writer(
            client, may_write=may_write, clock=clock, note=_note, chance=chance, slots=WORKERS
        )
        self._reports = WriteQueue(note=_note)
        self._queue = WorkQueue()
        self._looks = WorkQueue()
        self._nodes: dict[str, _Known] = {}
        self._listed: set[str] | None = None
        self._kept: set[str] = set()
        """Pending nodes of which it was said that pods keep them."""
        self._guests = Guests(client, rules, clock)
        self.writes: Counter[str] = Counter()
        """Of nodes, by how they ended."""
        self.reflector = Reflector(
            client,
            _PATH,
            on_event=self._on_event,
            clock=clock,
            chance=chance,
            pace=Pace(absent_poll_s=None),
            kind="Node",
        )

    @property
    def reasons(self) -> dict[str, str]:
        """Of each node of the life-cycle why it is not whose it should be, "" if it is."""
        return {name: one.reason for name, one in self._nodes.items() if one.reason is not None}

    async def run(self) -> None:
        """Keep the nodes until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.reflector.run())
                group.create_task(self._reports.run())
                for _ in range(WORKERS):
                    group.create_task(self._work())
                for _ in range(LOOKERS):
                    group.create_task(self._look())
        finally:
            self._queue.close()

    # What the watch tells

    def _on_event(self, event: events.WatchEvent) -> None:
        match event:
            case events.ListBegins():
                self._listed = set()
            case events.SomeListed(items):
                for raw in items:
                    self._learn(raw)
            case events.Listed():
                listed = self._listed or set()
                for name in [one for one in self._nodes if one not in listed]:
                    self._lose(name)
                self._listed = None
                log.info("synced", nodes=len(self._nodes))
            case events.Added(raw) | events.Modified(raw):
                self._learn(raw)
            case events.Deleted(raw):
                self._lose(_name_of(raw))
            case events.Failing(error, 1):
                log.warning("the nodes are not heard of", problem=error.message)
            case events.Recovered():
                log.info("the nodes are heard of again")
            case _:
                pass  # the reflector lists anew after an event that is garbled

    def _learn(self, raw: bytes) -> None:
        try:
            node = _NODE.decode(raw)
        except UNREADABLE as error:
            log.warning("a node cannot be read", node=_name_of(raw), problem=str(error))
            return
        name = node.metadata.name
        if self._listed is not None:
            self._listed.add(name)
        is_new = name not in self._nodes
        known = self._nodes.setdefault(name, _Known(node))
        if is_new or reservations.is_open(known.node, self._rules):
            known.closed_at_s = self._clock.monotonic_s()
        known.node = node
        self._queue.put(name)

    def _lose(self, name: str) -> None:
        self._queue.forget(name)
        self._kept.discard(name)
        self._nodes.pop(name, None)

    # What is done about a node

    async def _work(self) -> None:
        while True:
            name = await self._queue.take()
            known = self._nodes.get(name)
            try:
                wait_s = await self._settle(known) if known is not None else None
            except Exception as error:  # a defect of ours costs this node its turn
                _note("nodes", name, error)
                wait_s = _AGAIN_S
            finally:
                self._queue.done(name)
            if wait_s is not None and name in self._nodes:
                self._queue.put_later(name, wait_s)

    async def _look(self) -> None:
        """Look for pods on nodes that wait for that; those that have to be closed never wait."""
        while True:
            name = await self._looks.take()
            known = self._nodes.get(name)
            try:
                if known is not None:
                    node = known.node
                    known.found = node, await self._guests.of(node)
                    self._queue.put(name)
            except (ApiError, *UNREADABLE) as error:
                log.warning("a node's pods are not known", node=name, problem=str(error))
                self._queue.put_later(name, _AGAIN_S)
            except Exception as error:  # as above
                _note("nodes", name, error)
                self._queue.put_later(name, _AGAIN_S)
            finally:
                self._looks.done(name)

    async def _settle(self, known: _Known) -> float | None:
        """Bring a node nearer to what it should be; return when to look again, in seconds."""
        node, hold, now_s = known.node, known.hold, self._clock.monotonic_s()
        hold.saw(_asked(node, self._rules), now_s)
        verdict = self._judge(known, now_s)
        if verdict is None:
            return None
        known.reason = verdict.reason or ""
        if verdict.reason is not Reason.PENDING:
            self._kept.discard(node.metadata.name)
        patch = reservations.amended(node, verdict, self._rules)
        if patch is not None:
            is_of_it = reservations.is_of_reservation(node, patch, self._rules)
            what = verdict.reserved if is_of_it else _BESIDES
            wait_s = _steadied(hold, what, now_s)
            if wait_s is None:
                is_news = not hold.is_too_often(what, now_s)
                wait_s = await self._write(known, verdict, patch, is_news=is_news)
                if wait_s is None:
                    hold.wrote(what, self._clock.monotonic_s())
            if wait_s is not None:
                return wait_s
        return self._next_look_s(known, verdict, now_s)

    def _next_look_s(self, known: _Known, verdict: Verdict, now_s: float) -> float | None:
        """Return when to look at a node again of which nothing new is heard, in seconds."""
        if now_s < known.hold.until_s:
            return known.hold.until_s - now_s
        if verdict.reason is not Reason.PENDING:
            return None
        if known.node.metadata.name in self._kept:
            return max(_LOOK_S, len(self._kept) / _LOOKS_PER_S)
        return max(_SOON_S, known.closed_at_s + _CLOSED_S - now_s)

    def _judge(self, known: _Known, now_s: float) -> Verdict | None:
        """Return the verdict; None: it is not part of the life-cycle, or is looked at first."""
        node, hold, name = known.node, known.hold, known.node.metadata.name
        verdict = reservations.judge(node, self._rules)
        if verdict is None:
            known.reason = None
            return None
        if now_s < hold.until_s:
            is_asked = self._rules.desired_label in node.labels
            return reservations.unsteady("" if is_asked else hold.desired)
        if verdict.reason is not Reason.PENDING:
            return verdict
        is_open = reservations.is_open(node, self._rules)
        if is_open or now_s < known.closed_at_s + _CLOSED_S:
            return verdict
        (looked_at, guests), known.found = known.found or (None, []), None
        if looked_at is not node:
            self._looks.put(name)
            return None
        if not guests:
            return reservations.judge(node, self._rules, is_vacant=True)
        if name not in self._kept:
            self._kept.add(name)
            more = f" and {len(guests) - 1} more" if len(guests) > 1 else ""
            self._say(node, Reason.PENDING, f"{verdict.words}: {guests[0]}{more}")
        return verdict

    async def _write(
        self, known: _Known, verdict: Verdict, patch: dict[str, Any], *, is_news: bool
    ) -> float | None:
        """Write; return when to judge the node again if it was not written, in seconds."""
        node, name = known.node, known.node.metadata.name
        path = resource_path("", "v1", "nodes", name=name)
        outcome = await self._writer.write(partial(self._writer.patch, path, patch, "merge"), _RULE)
        self.writes[outcome.end.name] += 1
        match outcome.end:
            case End.DONE:
                log.info("node written", node=name, reserved=verdict.reserved, why=verdict.told)
                if is_news:
                    self._tell(known, node, verdict, patch)
            case End.CHANGED:  # another version of it comes, unless it has come already
                return _LOOK_S
            case End.REFUSED | End.GIVEN_UP:
                log.warning("a node was not written", node=name, problem=outcome.problem)
                return _AGAIN_S
            case _:
                pass  # it is gone, or another replica leads
        return None

    def _tell(self, known: _Known, node: Node, verdict: Verdict, patch: dict[str, Any]) -> None:
        """Say what was written to this version: a reason once for as long as it is the same."""
        reason = verdict.reason
        was_said = known.said == reason and reason is not None
        known.said = reason
        if not was_said and reason is not Reason.PENDING:  # which is said when pods keep it
            self._say(node, *_news(node, verdict, patch, self._rules))

    def _say(self, node: Node, reason: str, note: str) -> None:
        """Say in an Event what became of the node."""
        is_bad = reason in _BAD
        event = bodies.event_about(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "name": node.metadata.name,
                "uid": node.metadata.uid,
            },
            kind="Warning" if is_bad else "Normal",
            reason=reason,
            action="Reserving",
            note=note,
            instance=self._instance,
            now_s=self._clock.wall_s(),
            by=CONTROLLER,
        )
        key = (node.metadata.name, reason)
        self._reports.put(key, partial(self._writer.post, _EVENTS, event), urgent=is_bad)


def _news(node: Node, verdict: Verdict, patch: dict[str, Any], rules: Rules) -> tuple[str, str]:
    """Return the reason of an Event, and its note."""
    before = node.labels.get(rules.reserved_label)
    if verdict.reason is not None:
        return verdict.reason, f"reserved for {verdict.reserved}: {verdict.words}"
    if before != verdict.reserved:
        was = f", before for {before}" if before else ""
        return "Reserved", f"reserved for {verdict.reserved}{was}"
    what = [*patch["metadata"].get("labels", {}), *(["taints"] if "spec" in patch else [])]
    named = ", ".join(what) or "its annotation"
    return "Corrected", f"set {named} to what its reservation and its hardware say"


def _steadied(hold: Hold, what: str, now_s: float) -> float | None:
    """Return for how long not to write, in seconds; None: write. A node may be held from now on."""
    if now_s < hold.until_s:
        hold.extend(now_s)
        return hold.wait_s(now_s) or None
    if not hold.is_too_often(what, now_s):
        return None
    if what == _BESIDES:
        return hold.wait_s(now_s) or None
    hold.begin(now_s)
    return 0.0  # it is judged again, as a held one


def _asked(node: Node, rules: Rules) -> Asked:
    return Asked(node.labels.get(rules.state_label), node.labels.get(rules.desired_label))


def _name_of(raw: bytes) -> str:
    try:
        return _NAMED.decode(raw).metadata.name
    except UNREADABLE:
        return ""


def _note(stage: str, about: str, error: Exception) -> None:
    log.error(
        "met a defect of our own and set aside what met it",
        stage=stage,
        about=about,
        exc_info=error,
    )
